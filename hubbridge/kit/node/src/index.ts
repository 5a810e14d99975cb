export { Hub, timestamp, type Handlers } from "./hub.js";
export { HubError, type HubEvent, type HubOptions, type Params } from "./types.js";
