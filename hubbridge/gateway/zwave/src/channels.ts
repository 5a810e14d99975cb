import { isDeepStrictEqual } from "node:util";
import { CommandClasses } from "@zwave-js/core";
import type { TranslatedValueID, ValueID, ZWaveNode } from "zwave-js";
import type { ChannelSpec, Value } from "../../devices/types.js";

/** How a value of Z-Wave JS becomes a channel, and how a command becomes a value. */
export interface Mapping {
  spec: ChannelSpec;
  /** The value whose updates are reports of the channel. */
  from: ValueID;
  /** Returns the channel's value; undefined if the report says nothing about it. */
  report: (value: unknown) => Value | undefined;
  /** The value that a command sets. */
  to?: ValueID;
  /** Returns what to set; undefined if the channel does not take the value. */
  command?: (value: Value) => unknown;
}

/** What of a mapping depends on the command class. */
type Part = Omit<Mapping, "from" | "spec"> & Partial<ChannelSpec> & { key: string };
interface Metadata { unit?: string; min?: number; max?: number; states?: Record<number, string>; ccSpecific?: Record<string, number> }

const CC = CommandClasses;

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const bool = (value: unknown): Value | undefined => typeof value === "boolean" ? value : undefined;
const number = (value: unknown): Value | undefined => isNumber(value) ? value : undefined;
const round = (value: number): number => Math.round(value * 100) / 100;
const snake = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_|_$/g, "");

// Numbers and meanings are facts of the public Z-Wave specification.
const MODES: Record<number, string> = {
  0: "off", 1: "heat", 2: "cool", 3: "auto", 4: "aux_heat", 5: "resume", 6: "fan_only", 7: "furnace", 8: "dry",
  9: "moist", 10: "auto_changeover", 11: "eco", 12: "eco_cool", 13: "away", 15: "full_power",
};
const FAN_MODES: Record<number, string> = {
  0: "auto_low", 1: "low", 2: "auto_high", 3: "high", 4: "auto_medium", 5: "medium", 6: "circulation",
  7: "humidity_circulation", 8: "left_right", 9: "up_down", 10: "quiet",
};
const OPERATING: Record<number, string> = {
  0: "idle", 1: "heating", 2: "cooling", 3: "fan_only", 4: "pending_heat", 5: "pending_cool", 6: "vent", 7: "aux_heating",
  8: "second_stage_heating", 9: "second_stage_cooling", 10: "second_stage_aux_heating", 11: "third_stage_aux_heating",
};
const FAN_STATES: Record<number, string> = {
  0: "idle", 1: "low", 2: "high", 3: "medium", 4: "circulation", 5: "humidity_circulation", 6: "left_right", 7: "up_down", 8: "quiet",
};
const SENSORS: Record<string, string> = {
  "Air temperature": "temperature", "Humidity": "humidity", "Illuminance": "luminance", "Carbon dioxide level": "co2",
  "Power": "power", "Voltage": "voltage", "Current": "current",
};
const BINARY_SENSORS: Record<string, string> = {
  "Motion": "motion", "Door/Window": "contact", "Water": "leak", "Smoke": "smoke", "CO": "co", "Heat": "heat", "Tamper": "tamper",
};
// Notification type and variable: the channel, and the events that mean true. Event 0 is idle.
const NOTIFICATIONS: Record<string, [key: string, events: number[]]> = {
  "1 Sensor status": ["smoke", [1, 2]], "2 Sensor status": ["co", [1, 2]], "4 Heat sensor status": ["heat", [1, 2]],
  "5 Sensor status": ["leak", [1, 2]], "6 Door state": ["contact", [22]], "6 Door state (simple)": ["contact", [22]],
  "7 Motion sensor status": ["motion", [7, 8]], "7 Cover status": ["tamper", [3]],
};
// Meter type and scale. Electricity in kVAh, pulses and power factors has no channel.
const METERS: Record<string, string> = {
  "1 0": "energy", "1 2": "power", "1 4": "voltage", "1 5": "current", "2 0": "gas", "2 1": "gas", "3 0": "water", "3 1": "water", "3 2": "water",
};

/** Returns a mapping from and to numbers that have names. */
function named(key: string, names: Record<number, string>, states?: Record<number, string>): Part {
  const known = Object.fromEntries(Object.entries(states ?? names)
    .map(([number, label]) => [Number(number), names[Number(number)] ?? snake(label)]));
  return {
    key,
    report: (value) => isNumber(value) ? known[value] ?? names[value] : undefined,
    command: (value) => {
      const found = Object.entries(known).find(([, name]) => name === value)?.[0];
      return found === undefined ? undefined : Number(found);
    },
  };
}

/** Returns a setpoint. The cloud has °C; a thermostat in °F takes whole degrees. */
function setpoint(key: string, { unit, min, max }: Metadata): Part {
  const fahrenheit = unit === "°F";
  const toC = (value: number): number => fahrenheit ? round((value - 32) / 1.8) : value;
  const bounds = { ...isNumber(min) && { min: toC(min) }, ...isNumber(max) && { max: toC(max) } };
  return {
    key, unit: "°C", capabilities: { ...bounds, resolution: fahrenheit ? 0.5556 : 0.5 },
    report: (value) => isNumber(value) ? toC(value) : undefined,
    command: (value) => !isNumber(value) ? undefined : fahrenheit ? Math.round(value * 1.8 + 32) : Math.round(value * 2) / 2,
  };
}

/** Reports whether a node's Multilevel Switch moves something instead of dimming. */
function moves(node: ZWaveNode, endpoint: number): boolean {
  const { generic, specific } = node.getEndpoint(endpoint)?.deviceClass ?? node.deviceClass ?? {};
  return generic?.key === 0x09 || generic?.key === 0x11 && [3, 5, 6, 7].includes(specific?.key ?? 0);
}

function part(node: ZWaveNode, id: TranslatedValueID, metadata: Metadata): Part | undefined {
  const { commandClass, property, propertyKey } = id, endpoint = id.endpoint ?? 0;
  const to = (property: string, key?: string | number): ValueID =>
    ({ commandClass, endpoint, property, ...key === undefined ? {} : { propertyKey: key } });
  const flag = (key: string, target: string): Part => ({ key, report: bool, to: to(target), command: (value) => value });
  switch (commandClass) {
    case CC["Binary Switch"]:
      return property === "currentValue" ? flag("switch", "targetValue") : undefined;
    case CC["Multilevel Switch"]:
      return property === "currentValue"
        ? { key: moves(node, endpoint) ? "position" : "level", unit: "%", report: percent, to: to("targetValue"), command: (value) => value } : undefined;
    case CC["Window Covering"]: // parameters with a position are odd
      return property === "currentValue" && Number(propertyKey) % 2 === 1
        ? { key: "position", unit: "%", report: percent, to: to("targetValue", propertyKey), command: (value) => value } : undefined;
    case CC["Color Switch"]:
      return property === "currentColor" && propertyKey === undefined
        ? { key: "color", report: color, to: to("targetColor"), command: toColor } : undefined;
    case CC["Door Lock"]: // 255 is secured, 254 unknown, all others are unsecured in some way
      return property === "currentMode" ? {
        key: "lock", report: (value) => isNumber(value) && value !== 254 ? value === 255 : undefined,
        to: to("targetMode"), command: (value) => value ? 255 : 0,
      } : undefined;
    case CC["Lock"]:
      return property === "locked" ? flag("lock", "locked") : undefined;
    case CC["Barrier Operator"]: // 255 is open, 0 closed; what lies between is a barrier that moves
      return property === "currentState" ? {
        key: "barrier", report: (value) => value === 255 ? true : value === 0 ? false : undefined,
        to: to("targetState"), command: (value) => value ? 255 : 0,
      } : undefined;
    case CC["Thermostat Mode"]:
      return property === "mode" ? { ...named("mode", MODES, metadata.states), to: to("mode") } : undefined;
    case CC["Thermostat Fan Mode"]:
      return property === "mode" ? { ...named("fan_mode", FAN_MODES, metadata.states), to: to("mode") } : undefined;
    case CC["Thermostat Setpoint"]: {
      const key = propertyKey === 1 ? "heating_setpoint" : propertyKey === 2 ? "cooling_setpoint" : undefined;
      return property === "setpoint" && key ? { ...setpoint(key, metadata), to: to("setpoint", propertyKey) } : undefined;
    }
    case CC["Thermostat Operating State"]:
      return property === "state" ? { key: "operating_state", report: named("", OPERATING).report } : undefined;
    case CC["Thermostat Fan State"]:
      return property === "state" ? { key: "fan_state", report: named("", FAN_STATES).report } : undefined;
    case CC["Protection"]:
      return property === "local" ? {
        key: "local_protection", report: (value) => isNumber(value) ? value !== 0 : undefined,
        to: to("local"), command: (value) => !value ? 0 : metadata.states?.[2] === undefined ? 1 : 2,
      } : undefined;
    case CC["Multilevel Sensor"]:
      return { key: SENSORS[String(property)] ?? snake(String(property)), unit: metadata.unit ?? null, report: number };
    case CC["Binary Sensor"]: {
      const key = BINARY_SENSORS[String(property)];
      return key ? { key, report: bool } : undefined;
    }
    case CC["Meter"]: { // rate type 2 is what is produced
      const { meterType, scale, rateType } = metadata.ccSpecific ?? {};
      const key = METERS[`${meterType} ${scale}`];
      return property === "value" && key && rateType !== 2 ? { key, unit: metadata.unit ?? null, report: number } : undefined;
    }
    case CC["Battery"]:
      return property === "level" && endpoint === 0 ? { key: "battery", unit: "%", report: number } : undefined;
    case CC["Notification"]: {
      const found = NOTIFICATIONS[`${metadata.ccSpecific?.["notificationType"]} ${String(propertyKey)}`];
      return found ? { key: found[0], report: (value) => isNumber(value) ? found[1].includes(value) : undefined } : undefined;
    }
    default:
      return undefined;
  }
}

const percent = (value: unknown): Value | undefined => isNumber(value) && value <= 100 ? Math.min(99, value) : undefined;

function color(value: unknown): Value | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { red = 0, green = 0, blue = 0, warmWhite } = value as Record<string, number | undefined>;
  return { red, green, blue, ...warmWhite === undefined ? {} : { warm_white: warmWhite } };
}

function toColor(value: Value): unknown {
  const { red, green, blue, warm_white } = value as Record<string, number>;
  return { red, green, blue, ...warm_white === undefined ? {} : { warmWhite: warm_white } };
}

/** Returns the channels of a node. Of two values with one channel the first counts: Notification before Binary Sensor. */
export function mappings(node: ZWaveNode): Mapping[] {
  const found = new Map<string, Mapping>();
  const ids = node.getDefinedValueIDs().sort((a, b) =>
    Number(b.commandClass === CC.Notification) - Number(a.commandClass === CC.Notification));
  for (const id of ids) {
    const metadata = node.getValueMetadata(id) as Metadata, mapped = part(node, id, metadata);
    if (!mapped) continue;
    const { key, unit, capabilities, report, to, command } = mapped;
    const { commandClass, property, propertyKey } = id, endpoint = id.endpoint ?? 0;
    const name = `${key} ${endpoint}`;
    if (found.has(name)) continue;
    found.set(name, {
      spec: { key, endpoint, unit: unit ?? null, writable: to !== undefined, capabilities: capabilities ?? {} },
      from: { commandClass, endpoint, property, ...propertyKey === undefined ? {} : { propertyKey } },
      report, ...to && { to }, ...to && command && { command },
    });
  }
  const list = [...found.values()];
  const report = (key: string): Mapping => // channels of events, which no value has
    ({ spec: { key, readable: false }, from: { commandClass: 0, property: key }, report: () => undefined });
  if (node.supportsCC(CC.Notification) || node.supportsCC(CC["Entry Control"])) list.push(report("alarm"));
  if (node.supportsCC(CC["Central Scene"]) || node.supportsCC(CC["Scene Activation"])) list.push(report("scene"));
  return list;
}

/** Returns what a node is by its class: a lock or a barrier, and whether the class says that it needs security. */
export function guarded(node: ZWaveNode): { key: "lock" | "barrier"; secure: boolean } | undefined {
  const { generic, specific } = node.deviceClass ?? {}, kind = specific?.key ?? 0;
  if (generic?.key !== 0x40 || kind > 0x0a) return undefined; // Entry Control; 0x0b and above are keypads
  return { key: kind >= 5 && kind <= 9 ? "barrier" : "lock", secure: kind >= 3 };
}

/** Returns the channels of a lock or barrier that does not tell them, because it has joined without its security. */
export function refused(node: ZWaveNode, maps: Mapping[]): Mapping[] {
  const key = guarded(node)?.key;
  if (key === undefined || maps.some(({ spec }) => spec.key === key)) return [];
  return [{ spec: { key, writable: true }, from: { commandClass: 0, property: key }, report: () => undefined }];
}

/** Reports whether a mapping's channel is one that is known, with the same unit and bounds. */
export function describes({ key, endpoint, unit, writable, capabilities }: ChannelSpec, known: Required<ChannelSpec>): boolean {
  return key === known.key && isDeepStrictEqual(
    [endpoint ?? 0, unit ?? null, writable ?? false, capabilities ?? {}],
    [known.endpoint, known.unit, known.writable, known.capabilities],
  );
}

/** Reports whether two value IDs are of the same value. */
export function sameValue(a: ValueID, b: ValueID): boolean {
  return a.commandClass === b.commandClass && (a.endpoint ?? 0) === (b.endpoint ?? 0) &&
    a.property === b.property && a.propertyKey === b.propertyKey;
}

const SCENES = ["pressed", "released", "held", "pressed_2", "pressed_3", "pressed_4", "pressed_5"];

/** Returns the scene of a value notification, or undefined if it is none. */
export function sceneOf(id: ValueID, value: unknown): Value | undefined {
  if (!isNumber(value)) return undefined;
  if (id.commandClass === CC["Central Scene"] && id.property === "scene") {
    return { scene: Number(id.propertyKey), attribute: SCENES[value] ?? String(value) };
  }
  if (id.commandClass === CC["Scene Activation"] && id.property === "sceneId") return { scene: value, attribute: "pressed" };
  return undefined;
}
