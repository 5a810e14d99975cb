import { route } from "./route.js";

/** An ordered sequence of events that the service pages and streams: the log of a hub, the feed of the organization, or its audit log. */
export interface Source {
  /** The path of the pages; that of the stream is path and /stream. */
  path: string;
  /** The filter, sent with every request. */
  query: Record<string, string | readonly string[] | undefined>;
  /** Positions are those of the feed; those of a hub's log are the cursors of its events. */
  isFeed: boolean;
  /** The hub of a log. */
  hubId?: string;
}

/** The header with a reader's name, of 1 to 64 characters. Others than ASCII are sent as UTF-8, which fetch takes byte by byte. */
export function readerHeader(name: string | undefined): Record<string, string> {
  return name === undefined ? {} : { Reader: String.fromCharCode(...new TextEncoder().encode(name)) };
}

/** Selects events of the feed. It is no part of a position, and may change from one request to the next. */
export interface FeedFilter {
  /** Only the hubs at these sites. */
  siteIds?: readonly string[];
  /** Only these hubs. */
  hubIds?: readonly string[];
  /** Only these types of events, such as channel.observed, or those with a prefix, such as channel.*. */
  types?: readonly string[];
  /** Only the part-th of a number of parts of the hubs, such as { part: 2, of: 8 }, which together have each hub once. */
  part?: { part: number; of: number };
}

/** Selects records of the audit log. */
export interface AuditFilter {
  /** Only these types, such as key.created, or those with a prefix, such as key.*. */
  types?: readonly string[];
  /** Only changes of these hubs and their devices. */
  hubIds?: readonly string[];
  /** Only changes by the member, key or hub with this id. */
  actorId?: string;
  /** Only changes of what has this id. */
  subjectId?: string;
}

export function auditSource(filter: AuditFilter): Source {
  return {
    path: "/audit", isFeed: false,
    query: { type: filter.types, hub_id: filter.hubIds, actor_id: filter.actorId, subject_id: filter.subjectId },
  };
}

export function hubSource(hubId: string): Source {
  return { path: route("hubs", hubId, "events"), query: {}, isFeed: false, hubId };
}

export function feedSource(filter: FeedFilter): Source {
  const part = filter.part && `${filter.part.part}/${filter.part.of}`;
  return { path: "/events", query: { site_id: filter.siteIds, hub_id: filter.hubIds, type: filter.types, part }, isFeed: true };
}
