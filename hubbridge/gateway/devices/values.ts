import { isDeepStrictEqual } from "node:util";
import type { Channel, Value } from "./types.js";

const isInteger = (value: Value, max: number): boolean =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max;
const isObject = (value: Value): value is { [member: string]: Value } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Reports whether a channel takes the value of a command: its form, and the bounds of a setpoint. */
export function takes(channel: Channel, value: Value): boolean {
  const { min, max } = channel.capabilities;
  switch (channel.key) {
    case "lock": case "barrier": case "switch": case "local_protection":
      return typeof value === "boolean";
    case "level": case "position":
      return isInteger(value, 99);
    case "heating_setpoint": case "cooling_setpoint":
      return typeof value === "number" && !(value < Number(min)) && !(value > Number(max));
    case "color":
      return isObject(value) && ["red", "green", "blue"].every((part) => isInteger(value[part] ?? null, 255)) &&
        (value["warm_white"] === undefined || isInteger(value["warm_white"], 255));
    default:
      return typeof value === "string" && value !== "";
  }
}

/** Reports whether a report is what was asked: section 11 of the protocol. */
export function fulfils(channel: Channel, reported: Value, asked: Value): boolean {
  if (isObject(reported) && isObject(asked)) {
    return Object.entries(asked).every(([member, value]) => isDeepStrictEqual(reported[member], value));
  }
  if (typeof reported === "number" && typeof asked === "number") {
    return Math.abs(reported - asked) <= Number(channel.capabilities["resolution"] ?? 0) / 2 + 1e-9;
  }
  return isDeepStrictEqual(reported, asked);
}
