export { Client } from "./client.js";
export type { AuditOptions, Call, ClientOptions, FeedOptions, FollowOptions, NewCommand, PageOptions, ReadOptions, Retry, SendOptions, Sent, Snapshot, StartPosition, StateFilter, StateSnapshot } from "./options.js";
export { ApiError, ConnectionError, ProtocolError, ResyncError, type ErrorType } from "./errors.js";
export { isFeedGap, isGap } from "./gaps.js";
export { type Outcome, type OutcomeStatus } from "./outcome.js";
export type { AuditFilter, FeedFilter } from "./source.js";
export type * from "./types.js";
export type { components, operations, paths } from "./api.js";
