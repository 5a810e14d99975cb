import { ApiError, ConnectionError, errorOf, isRepeatable, ProtocolError } from "./errors.js";
import { type FeedOptions, Follower, type FollowOptions } from "./follow.js";
import { awaitOutcome, type Outcome } from "./outcome.js";
import { route } from "./route.js";
import { feedSource, type FeedFilter, hubSource, readerHeader, type Source } from "./source.js";
import { blocks, chunks } from "./sse.js";
import { limitedSignal, sleep } from "./timing.js";
import type {
  AcceptedCommand, Command, Device, DeviceItem, DeviceLabel, Event, EventPage, FeedEvent, FeedPage, GivenRole, Hub, HubItem, Invitation, Lag, Member, Reader, Site, State,
  Window,
} from "./types.js";

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

/** Where to start following: after a cursor, at the oldest stored event, or at the next new one. */
export type StartPosition = { after: string } | "oldest" | "now";

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

/** A request. */
interface Request extends Call {
  method: string;
  path: string;
  query?: Record<string, string | number | readonly string[] | undefined>;
  body?: unknown;
  idempotencyKey?: string;
  /** The name of a reader of events. */
  reader?: string | undefined;
  /** How long the service may hold the request open on purpose, in ms. */
  held?: number;
  /** The request must not reach the service twice: it is not repeated after a failed connection. */
  once?: boolean;
  /** not_found is a success if an earlier attempt may have removed the thing. */
  removes?: boolean;
}

/**
 * Client calls the API of an organization. It has a method for each operation, which rejects with an `ApiError` for an error of the API,
 * a `ConnectionError` if there was no answer, and a `ProtocolError` if the answer was not the API's.
 *
 * Calls are repeated as the contract says: after 429 once Retry-After has passed; after 500, 502, 503 and 504 with backoff; and after a
 * failed connection. Commands, and requests that create something, carry an idempotency key, the same in all attempts.
 */
export class Client {
  readonly #base: string;
  readonly #key: string | undefined;
  readonly #timeout: number;
  readonly #retry: Required<Retry>;
  readonly #fetch: typeof fetch;
  readonly #onRetry: NonNullable<ClientOptions["onRetry"]>;

  constructor(options: ClientOptions) {
    if (!/^(https?:\/\/[^/?#]+|\/)[^?#]*$/.test(options.baseUrl)) {
      throw new TypeError("baseUrl: must be http://… or https://…, with the API's version, such as https://api.example.com/v1");
    }
    if (options.apiKey !== undefined && !/^[!-~]+$/.test(options.apiKey)) {
      throw new TypeError("apiKey: must be printable ASCII without spaces, as the portal showed it");
    }
    this.#base = options.baseUrl.replace(/\/+$/, "");
    this.#key = options.apiKey;
    this.#timeout = options.timeout ?? 40_000;
    const minBackoff = options.retry?.minBackoff ?? 200;
    const maxBackoff = Math.max(options.retry?.maxBackoff ?? 10_000, minBackoff);
    this.#retry = { maxElapsed: options.retry?.maxElapsed ?? 60_000, minBackoff, maxBackoff };
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#onRetry = options.onRetry ?? (() => undefined);
  }

  /** The sites, oldest first. Further pages are read as the loop needs them. Scope sites:read. */
  sites(options: Call & { limit?: number } = {}): AsyncGenerator<Site> {
    return this.#list<Site>("/sites", {}, options);
  }

  /** Creates a site. Scope sites:write. */
  createSite(name: string, options: SendOptions = {}): Promise<Site> {
    return this.#create("/sites", { name }, options);
  }

  site(siteId: string, options: Call = {}): Promise<Site> {
    return this.#json({ method: "GET", path: route("sites", siteId), ...options });
  }

  renameSite(siteId: string, name: string, options: Call = {}): Promise<Site> {
    return this.#json({ method: "PATCH", path: route("sites", siteId), body: { name }, ...options });
  }

  /** The hubs, by id. Scope hubs:read. */
  hubs(options: Call & { siteId?: string; limit?: number } = {}): AsyncGenerator<HubItem> {
    return this.#list<HubItem>("/hubs", { site_id: options.siteId }, options);
  }

  /** Adds a hub to a site. Scope hubs:write. */
  addHub(serial: string, siteId: string, options: SendOptions & { name?: string } = {}): Promise<Hub> {
    return this.#create("/hubs", { serial, site_id: siteId, name: options.name }, options);
  }

  hub(hubId: string, options: Call = {}): Promise<Hub> {
    return this.#json({ method: "GET", path: route("hubs", hubId), ...options });
  }

  /** Renames or moves a hub; null clears its name. */
  updateHub(hubId: string, change: { name?: string | null; site_id?: string }, options: Call = {}): Promise<Hub> {
    return this.#json({ method: "PATCH", path: route("hubs", hubId), body: change, ...options });
  }

  /** Revokes a hub's certificate and disconnects it. */
  async resetLink(hubId: string, options: Call = {}): Promise<void> {
    await this.#send({ method: "POST", path: route("hubs", hubId, "reset-link"), once: true, ...options });
  }

  /** A hub's devices, asked of the hub, with the cursor from which to follow their changes. Scope hubs:read. */
  async devices(hubId: string, options: Call = {}): Promise<Snapshot> {
    const response = await this.#send({ method: "GET", path: route("hubs", hubId, "devices"), ...options });
    const cursor = response.headers.get("Event-Cursor");
    const list = (await parsed(response)) as { data: DeviceItem[] };
    if (!cursor) {
      throw new ProtocolError("a list of devices without Event-Cursor");
    }
    return { devices: list.data, cursor };
  }

  /** The same as `devices`: what to do after a `ResyncError`, and the start of a program that keeps a hub's state. */
  resync(hubId: string, options: Call = {}): Promise<Snapshot> {
    return this.devices(hubId, options);
  }

  /**
   * What the channels of all devices last reported, also at hubs that are offline, and the position of the feed from which to follow their
   * changes: `client.feed({}, { after: position })`. Scope hubs:read.
   */
  async states(filter: StateFilter = {}, options: Call = {}): Promise<StateSnapshot> {
    const query = {
      site_id: filter.siteId, hub_id: filter.hubId, key: filter.key, value: filter.value?.toString(), status: filter.status,
      available: filter.available?.toString(), observed_before: filter.observedBefore?.toISOString(), limit: 500,
    };
    const states: State[] = [];
    let position: string | null = null;
    for (let after: string | undefined; ;) {
      const response = await this.#send({ method: "GET", path: "/state", query: { ...query, starting_after: after }, ...options });
      position ??= response.headers.get("Event-Cursor");
      const page = (await parsed(response)) as { data: State[]; has_more: boolean };
      if (!position) {
        throw new ProtocolError("a list of states without Event-Cursor");
      }
      states.push(...page.data);
      after = page.data.at(-1)?.id;
      if (!page.has_more || after === undefined) {
        return { states, position };
      }
    }
  }

  device(hubId: string, deviceId: number, options: Call = {}): Promise<Device> {
    return this.#json({ method: "GET", path: route("hubs", hubId, "devices", deviceId), ...options });
  }

  /** Sets the name or room of a device; null clears. */
  updateDevice(hubId: string, deviceId: number, change: { name?: string | null; room?: string | null }, options: Call = {}): Promise<DeviceLabel> {
    return this.#json({ method: "PATCH", path: route("hubs", hubId, "devices", deviceId), body: change, ...options });
  }

  /** Forgets a device that the hub cannot reach any more. */
  async forgetDevice(hubId: string, deviceId: number, options: Call = {}): Promise<void> {
    await this.#send({ method: "DELETE", path: route("hubs", hubId, "devices", deviceId), removes: true, ...options });
  }

  /** Opens the window in which one device can join. */
  openPairing(hubId: string, options: Call & { setupCode?: string } = {}): Promise<Window> {
    const body = options.setupCode === undefined ? undefined : { setup_code: options.setupCode };
    return this.#json({ method: "POST", path: route("hubs", hubId, "pairing"), body, signal: options.signal });
  }

  async closePairing(hubId: string, options: Call = {}): Promise<void> {
    await this.#send({ method: "DELETE", path: route("hubs", hubId, "pairing"), ...options });
  }

  /** Opens the window in which devices can leave. */
  openRemoval(hubId: string, options: Call = {}): Promise<Window> {
    return this.#json({ method: "POST", path: route("hubs", hubId, "removal"), ...options });
  }

  async closeRemoval(hubId: string, options: Call = {}): Promise<void> {
    await this.#send({ method: "DELETE", path: route("hubs", hubId, "removal"), ...options });
  }

  /**
   * Sends a command and resolves once the hub has accepted it; the outcome follows later. It is repeated under the same idempotency key,
   * so that the hub runs it once. After a ConnectionError or hub_timeout the hub may have run it all the same: sending it again with the
   * same key shows whether it did. Scope hubs:command.
   */
  async send(hubId: string, deviceId: number, command: NewCommand, options: SendOptions = {}): Promise<Sent> {
    const idempotencyKey = options.idempotencyKey ?? newIdempotencyKey();
    const accepted: AcceptedCommand = await this.#json({
      method: "POST", path: route("hubs", hubId, "devices", deviceId, "commands"), body: command, idempotencyKey, signal: options.signal,
    });
    return { ...accepted, idempotencyKey };
  }

  /**
   * Sends a command and waits for its outcome, at most for `limit` ms (30,000 by default), after which the outcome is "pending": not known.
   * What the device reported before the command does not count. Scopes hubs:command and events:read, and hubs:read to see failures.
   */
  async sendAndWait(hubId: string, deviceId: number, command: NewCommand, options: SendOptions & { limit?: number } = {}): Promise<{ sent: Sent; outcome: Outcome }> {
    const after = await this.position(hubId, options);
    const sent = await this.send(hubId, deviceId, command, options);
    const outcome = await awaitOutcome(this, sent, after, options.limit ?? 30_000, options.signal);
    return { sent, outcome };
  }

  /** The cursor of the newest event of a hub's log: events after the call are after it. Scope events:read. */
  position(hubId: string, options: Call = {}): Promise<string> {
    return this.positionOf(hubSource(hubId), options);
  }

  /** The newest position of the organization's feed: events after the call are after it. Scope events:read. */
  feedPosition(options: Call = {}): Promise<string> {
    return this.positionOf(feedSource({}), options);
  }

  /** The newest position of a source. For `follow` and `feed`. */
  async positionOf(source: Source, options: Call): Promise<string> {
    return this.#repeated({ method: "GET", path: `${source.path}/stream`, ...options }, async () => {
      const ended = new AbortController();
      const signal = limitedSignal(this.#timeout, ended.signal, options.signal);
      const stream = await this.openStream(source, "", signal);
      try {
        for await (const block of blocks(stream, () => undefined)) {
          if (block.id) {
            return block.id;
          }
        }
      } finally {
        ended.abort();
      }
      throw new ConnectionError("the event stream ended before its position");
    });
  }

  /** One page of a hub's events, and how far it is behind. `wait` is in seconds. Scope events:read. */
  events(hubId: string, options: PageOptions = {}): Promise<EventPage & { lag: Lag }> {
    return this.pageOf(hubSource(hubId), options);
  }

  /** One page of the events of all hubs of the organization, and how far it is behind. `wait` is in seconds. Scope events:read. */
  feedPage(filter: FeedFilter = {}, options: PageOptions = {}): Promise<FeedPage & { lag: Lag }> {
    return this.pageOf(feedSource(filter), options);
  }

  /** One page of a source. For `follow` and `feed`. */
  async pageOf<P extends EventPage | FeedPage>(source: Source, options: PageOptions): Promise<P & { lag: Lag }> {
    const response = await this.#send({
      method: "GET", path: source.path, held: (options.wait ?? 0) * 1000, signal: options.signal, reader: options.reader,
      query: { ...source.query, after: options.after, limit: options.limit, wait: options.wait },
    });
    return { ...((await parsed(response)) as P), lag: lagOf(response.headers) };
  }

  /** The readers of events that name themselves, by name, and how far they are behind. Scope events:read. */
  readers(options: Call & { limit?: number } = {}): AsyncGenerator<Reader> {
    return this.#list<Reader>("/readers", {}, options);
  }

  /**
   * Yields a hub's events after a position, in order, and continues with new ones until the loop is left or the signal aborts. It
   * reconnects and resumes by itself; no event is yielded twice. First process an event, then store its cursor: a program that starts
   * again with the stored cursor misses nothing.
   *
   * `hub.events_skipped` and `hub.log_reset` among the events mark a gap (`isGap`): read the devices again. It rejects with a `ResyncError`
   * if the cursor has expired, unless `onResync` is given. Scope events:read.
   */
  follow(hubId: string, from: StartPosition, options: FollowOptions = {}): AsyncGenerator<Event, void, undefined> {
    return new Follower(this, hubSource(hubId), from, options, (tries) => this.#backoff(tries), this.#onRetry).run();
  }

  /**
   * Yields the events of all hubs of the organization after a position, as `follow` does for one hub. Each hub's events are in the order of
   * its log; there is no order across hubs. Store the `position` of a processed event to resume after it; an event without one is not the
   * last of its page. `feed.gap` among the events says that events of that hub are gone for this reader (`isFeedGap`). It rejects with a
   * `ResyncError` once the position as a whole is older than the service keeps events. Scope events:read.
   */
  feed(filter: FeedFilter, from: StartPosition, options: FeedOptions = {}): AsyncGenerator<FeedEvent, void, undefined> {
    return new Follower(this, feedSource(filter), from, options, (tries) => this.#backoff(tries), this.#onRetry).run();
  }

  members(options: Call & { limit?: number } = {}): AsyncGenerator<Member> {
    return this.#list<Member>("/members", {}, options);
  }

  member(memberId: string, options: Call = {}): Promise<Member> {
    return this.#json({ method: "GET", path: route("members", memberId), ...options });
  }

  changeRole(memberId: string, role: GivenRole, options: Call = {}): Promise<Member> {
    return this.#json({ method: "PATCH", path: route("members", memberId), body: { role }, ...options });
  }

  async removeMember(memberId: string, options: Call = {}): Promise<void> {
    await this.#send({ method: "DELETE", path: route("members", memberId), removes: true, ...options });
  }

  invitations(options: Call & { limit?: number } = {}): AsyncGenerator<Invitation> {
    return this.#list<Invitation>("/invitations", {}, options);
  }

  invite(email: string, options: SendOptions & { role?: GivenRole } = {}): Promise<Invitation> {
    return this.#create("/invitations", { email, role: options.role }, options);
  }

  async revokeInvitation(invitationId: string, options: Call = {}): Promise<void> {
    await this.#send({ method: "DELETE", path: route("invitations", invitationId), removes: true, ...options });
  }

  /** Opens a stream of events, with positions, after a position, or with "" at the next new event. It is not repeated. For `follow` and `feed`. */
  async openStream(source: Source, after: string, signal: AbortSignal, reader?: string): Promise<AsyncGenerator<Uint8Array>> {
    const headers: Record<string, string> = { Accept: "text/event-stream", "Cache-Control": "no-cache", ...readerHeader(reader) };
    if (after !== "") {
      headers["Last-Event-ID"] = after;
    }
    const response = await this.#fetchOnce({ method: "GET", path: `${source.path}/stream`, query: { ...source.query, positions: "true" } }, signal, headers);
    if (!response.ok) {
      throw await errorOf(response);
    }
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream") || !response.body) {
      throw new ProtocolError(`an event stream of type ${response.headers.get("Content-Type")}`);
    }
    return unbroken(chunks(response.body));
  }

  async *#list<T extends { id: string }>(path: string, query: Request["query"], options: Call & { limit?: number }): AsyncGenerator<T> {
    let after: string | undefined;
    for (;;) {
      const page: { data: T[]; has_more: boolean } = await this.#json({
        method: "GET", path, query: { ...query, limit: options.limit, starting_after: after }, signal: options.signal,
      });
      yield* page.data;
      after = page.data.at(-1)?.id;
      if (!page.has_more || after === undefined) {
        return;
      }
    }
  }

  #create<T>(path: string, body: unknown, options: SendOptions): Promise<T> {
    const idempotencyKey = options.idempotencyKey ?? newIdempotencyKey();
    return this.#json({ method: "POST", path, body, idempotencyKey, signal: options.signal });
  }

  async #json<T>(request: Request): Promise<T> {
    return (await parsed(await this.#send(request))) as T;
  }

  /** Sends a request with retries. The answer's body has been read. */
  #send(request: Request): Promise<Response> {
    return this.#repeated(request, async () => {
      const signal = limitedSignal(this.#timeout + (request.held ?? 0), request.signal);
      const response = await this.#fetchOnce(request, signal, { Accept: "application/json", ...readerHeader(request.reader) });
      if (!response.ok) {
        throw await errorOf(response);
      }
      try {
        const text = await response.text();
        return new Response(text === "" ? null : text, { status: response.status, headers: response.headers });
      } catch (error) {
        throw brokenOff(error, request.signal);
      }
    });
  }

  async #repeated<T>(request: Request, attempt: () => Promise<T>): Promise<T> {
    const began = Date.now();
    let lost = false;
    for (let tries = 0; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        if (request.removes && lost && error instanceof ApiError && error.type === "not_found") {
          return new Response(null, { status: 204 }) as T;
        }
        request.signal?.throwIfAborted();
        const wait = this.#waitAfter(error, request, tries);
        if (wait === undefined || Date.now() + wait - began > this.#retry.maxElapsed) {
          throw error;
        }
        lost ||= error instanceof ConnectionError || (error instanceof ApiError && error.status >= 500);
        this.#onRetry({ error, wait, path: request.path });
        await sleep(wait, request.signal);
        request.signal?.throwIfAborted();
      }
    }
  }

  /** How long to wait before a request is repeated, in ms; undefined if it must not be. */
  #waitAfter(error: unknown, request: Request, tries: number): number | undefined {
    if (error instanceof ConnectionError) {
      return request.once ? undefined : this.#backoff(tries);
    }
    if (error instanceof ApiError && isRepeatable(error.status)) {
      return Math.max((error.retryAfter ?? 0) * 1000, this.#backoff(tries));
    }
    return undefined;
  }

  /** The wait after a number of failures: it doubles, and is randomized over its upper half. */
  #backoff(tries: number): number {
    const full = Math.min(this.#retry.minBackoff * 2 ** Math.min(tries, 30), this.#retry.maxBackoff);
    return full - (Math.random() * full) / 2;
  }

  async #fetchOnce(request: Request, signal: AbortSignal, headers: Record<string, string>): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (Array.isArray(value)) {
        value.forEach((one) => query.append(name, String(one)));
      } else if (value !== undefined) {
        query.set(name, String(value));
      }
    }
    const address = this.#base + request.path + (query.size > 0 ? `?${query}` : "");
    const init: RequestInit = { method: request.method, signal, headers };
    if (this.#key !== undefined) {
      init.headers = { ...init.headers, Authorization: `Bearer ${this.#key}` };
    }
    if (request.body !== undefined) {
      init.body = JSON.stringify(request.body);
      init.headers = { ...init.headers, "Content-Type": "application/json" };
    }
    if (request.idempotencyKey !== undefined) {
      init.headers = { ...init.headers, "Idempotency-Key": request.idempotencyKey };
    }
    try {
      return await this.#fetch(address, init);
    } catch (error) {
      throw brokenOff(error, request.signal);
    }
  }
}

/** Returns the error of a request without an answer, or the reason of the caller's signal. */
function brokenOff(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) {
    return signal.reason;
  }
  if (error instanceof ApiError || error instanceof ProtocolError || error instanceof ConnectionError) {
    return error;
  }
  return new ConnectionError(`no complete answer: ${reasonOf(error)}`, { cause: error });
}

/** Returns the text of an error with that of its cause, which in Node has the reason: "fetch failed" has none. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const { cause } = error;
  if (!(cause instanceof Error)) {
    return error.message;
  }
  const code = "code" in cause ? String(cause.code) : ""; // the message is empty if several addresses were tried
  return `${error.message}: ${cause.message || code}`;
}

/** Yields the chunks of a body; its errors are those of a connection. */
async function* unbroken(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      let result: IteratorResult<Uint8Array>;
      try {
        result = await iterator.next();
      } catch (error) {
        throw brokenOff(error, undefined);
      }
      if (result.done) {
        return;
      }
      yield result.value;
    }
  } finally {
    await iterator.return?.();
  }
}

/** How far a page is behind, by its headers. */
function lagOf(headers: Headers): Lag {
  const lag: Lag = {};
  const behind = headers.get("Events-Behind");
  if (behind !== null) {
    lag.eventsBehind = Number(behind);
  }
  const expiresIn = headers.get("Events-Expire-In");
  if (expiresIn !== null) {
    lag.expiresIn = Number(expiresIn);
  }
  return lag;
}

async function parsed(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    throw new ProtocolError(`an answer that is not JSON: ${text.slice(0, 200)}`);
  }
}

/** A random key. Browsers have randomUUID on secure pages only. */
function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
