export { Hub } from "./hub.js";
export { HubError } from "./types.js";
export type {
  Channel, ChannelSpec, Command, Device, DeviceSpec, HubOptions, Network, Radio, Status, Value,
} from "./types.js";
