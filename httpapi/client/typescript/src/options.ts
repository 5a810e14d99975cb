import type { AcceptedCommand, Command, DeviceItem, State } from "./types.js";

/** How calls are retried. */
export interface Retry {
  /** Bounds all attempts of a call and the waits between them, in ms. 0 means a single attempt. Defaults to 60,000. */
  maxElapsed?: number;
  /** The bounds of the wait between two attempts, in ms. It doubles each time, with jitter. Default to 200 and 10,000. */
  minBackoff?: number;
  maxBackoff?: number;
}

export interface ClientOptions {
  /** The address of the API with its version, such as https://api.example.com/v1. In browsers it may be a path of the page's origin, such as /v1. */
  baseUrl: string;
  /** The API key. It appears in no error. Left out, requests have no `Authorization`: for pages whose proxy adds it. */
  apiKey?: string;
  /** Bounds each attempt of a call, in ms. Defaults to 40,000, more than the service takes at worst. */
  timeout?: number;
  retry?: Retry;
  /** Sends the requests. Defaults to the platform's fetch. */
  fetch?: typeof fetch;
  /** Is called before each attempt that is repeated and each stream that is reconnected. */
  onRetry?: (retry: { error: unknown; wait: number; path: string }) => void;
}

/** Options of every call. */
export interface Call {
  /** Ends the call with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Where to start following: after a cursor, with the events stored since a time, with the newest ones (up to 500), at the oldest stored
 * event, or at the next new one.
 */
export type StartPosition = { after: string } | { since: Date } | { last: number } | "oldest" | "now";

/** Selects states. All fields that are given must match. */
export interface StateFilter {
  siteId?: string;
  hubId?: string;
  key?: string;
  /** Only channels whose value is this boolean. */
  value?: boolean;
  status?: State["channel"]["status"];
  available?: boolean;
  /** Only channels that have reported, but not at this time or later. */
  observedBefore?: Date;
}

/** What devices last reported, and the position of the feed from which to follow their changes. */
export interface StateSnapshot {
  states: State[];
  position: string;
}

/** A hub's devices, and the cursor from which to follow their changes. */
export interface Snapshot {
  devices: DeviceItem[];
  /** From before the hub was asked: changes that devices does not show come after it. */
  cursor: string;
}

/** Options of a page of events. */
export interface PageOptions extends Call {
  /** The cursor or position after which to read. Left out, the page begins with the oldest stored event. */
  after?: string | undefined;
  /** Begin with the events that the service stored at this time or later. Only one of after, since and last may be given. */
  since?: Date | undefined;
  /** Begin with the newest so many events, up to 500. */
  last?: number | undefined;
  /** The most events on the page, up to 500. Defaults to 100. */
  limit?: number;
  /** How long the service may wait for an event if there is none, in seconds, up to 60. */
  wait?: number;
  /** A name for this reader, of 1 to 64 characters: `readers` and the portal then show how far it has read. */
  reader?: string | undefined;
}

export interface SendOptions extends Call {
  /**
   * 1 to 255 characters that no other command of the organization has had within 24 hours. Generated if left out. A program that may
   * have to send the command again after its own restart stores a key and passes it.
   */
  idempotencyKey?: string;
}

/** A command, as `send` takes it. */
export type NewCommand = Command;

/** An accepted command. */
export interface Sent extends AcceptedCommand {
  idempotencyKey: string;
}

/** Options of `audit`. */
export interface AuditOptions extends Call {
  /**
   * Is called with each new position that is not an event's. Store it: a hub without events leaves no other cursor to resume from, and the
   * position of a feed moves on past the events that its filter leaves out.
   */
  onPosition?: (cursor: string) => void;
  /** Is called once, when every event that was stored before the start has been yielded. */
  onCaughtUp?: () => void;
  /** How long a stream may be silent before it is reconnected, in ms. Defaults to 75,000, enough for two keepalives. */
  stallTimeout?: number;
}

/** Options of `follow`. */
export interface ReadOptions extends AuditOptions {
  /** A name for this reader, of 1 to 64 characters: `readers` and the portal then show how far it has read. */
  reader?: string;
}

/** Options of `feed`. */
export interface FeedOptions extends ReadOptions {
  /**
   * Begins with what every channel of the filter's hubs last reported: is called with each, and every change since is yielded then, without
   * a gap. The start must be "now". If the connection breaks before the last state, the states begin anew. Needs the scope hubs:read.
   */
  onState?: (state: State) => void;
}

export interface FollowOptions extends ReadOptions {
  /**
   * Is called with the hub's devices when the cursor has expired; the events continue after them. Without it, `follow` rejects with a
   * `ResyncError`. Needs the scope hubs:read, and waits until the hub is online.
   */
  onResync?: (snapshot: Snapshot) => void | Promise<void>;
}
