export { Client, type Call, type ClientOptions, type NewCommand, type PageOptions, type Retry, type SendOptions, type Sent, type Snapshot, type StartPosition, type StateFilter, type StateSnapshot } from "./client.js";
export { ApiError, ConnectionError, ProtocolError, ResyncError, type ErrorType } from "./errors.js";
export { isFeedGap, isGap, type FeedOptions, type FollowOptions } from "./follow.js";
export { type Outcome, type OutcomeStatus } from "./outcome.js";
export type { FeedFilter } from "./source.js";
export type * from "./types.js";
export type { components, operations, paths } from "./api.js";
