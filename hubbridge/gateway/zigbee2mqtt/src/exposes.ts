import type { ChannelSpec, Value } from "../../devices/types.js";

/** What Zigbee2MQTT says about one thing that a device has: "Exposes" in its documentation. */
export interface Expose {
  type: string;
  name?: string;
  property?: string;
  endpoint?: string;
  access?: number;
  unit?: string;
  values?: (string | number)[];
  value_on?: unknown;
  value_off?: unknown;
  value_min?: number;
  value_max?: number;
  value_step?: number;
  features?: Expose[];
}

/** How a property of a device's messages becomes a channel, and a command becomes a message. */
export interface Mapping {
  spec: ChannelSpec;
  property: string;
  /** The property to ask for, if it is another than the one that is reported. */
  ask?: string;
  /** Returns the channel's value; undefined if the report says nothing about it. */
  report: (value: unknown, message: Record<string, unknown>) => Value | undefined;
  /** Returns what to publish; undefined if the channel does not take the value. */
  command?: (value: Value) => object | undefined;
}

const CAN_SET = 2; // a bit of access

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const number = (value: unknown): Value | undefined => isNumber(value) ? value : undefined;
const round = (value: number): number => Math.round(value * 100) / 100;
const toPercent = (value: unknown, max: number): Value | undefined =>
  isNumber(value) ? Math.max(0, Math.min(99, Math.round(value * 99 / max))) : undefined;

// Booleans that mean what the channel means, and one that does not: contact is true while closed.
const BINARIES: Record<string, string> = {
  occupancy: "motion", motion: "motion", presence: "motion", water_leak: "leak", smoke: "smoke", carbon_monoxide: "co", tamper: "tamper", contact: "contact",
};
const NUMBERS: Record<string, string> = {
  temperature: "temperature", local_temperature: "temperature", humidity: "humidity", illuminance: "luminance", illuminance_lux: "luminance",
  co2: "co2", battery: "battery", power: "power", energy: "energy", voltage: "voltage", current: "current", pressure: "pressure", pm25: "pm25", voc: "voc",
};
// Booleans that are trouble, for which there is no channel: they become alarms.
const ALARMS: Record<string, [type: string, event: string]> = {
  battery_low: ["Power Management", "Replace battery soon"], gas: ["Gas alarm", "Combustible gas detected"],
  vibration: ["Home Security", "Impact detected"], sos: ["Emergency Alarm", "Panic alert"],
};
const ACTIONS: Record<string, string> = {
  "": "pressed", single: "pressed", press: "pressed", click: "pressed", on: "pressed", short: "pressed", initial_press: "pressed",
  double: "pressed_2", triple: "pressed_3", quadruple: "pressed_4", quintuple: "pressed_5",
  hold: "held", long: "held", long_press: "held", release: "released", long_release: "released", short_release: "released", hold_release: "released",
};

/** Returns the number of an endpoint such as l2, 2, right: 0 if there is none. */
function endpointOf(expose: Expose, names: string[]): number {
  if (expose.endpoint === undefined) return 0;
  const digits = /\d+$/.exec(expose.endpoint);
  return digits ? Number(digits[0]) : names.indexOf(expose.endpoint) + 1;
}

/** Returns the channels of a device, by what it exposes. */
export function mappings(exposes: Expose[]): Mapping[] {
  const list: Mapping[] = [];
  const names = [...new Set(exposes.flatMap((each) => each.endpoint ?? []))];
  const add = (expose: Expose, key: string, mapping: Omit<Mapping, "spec" | "property">, spec: Partial<ChannelSpec> = {}): void => {
    const property = expose.property ?? expose.name ?? "", endpoint = endpointOf(expose, names);
    const taken = list.some((each) => each.spec.key === key && each.spec.endpoint === endpoint);
    if (property === "" || taken) return;
    const settable = mapping.command !== undefined && ((expose.access ?? 0) & CAN_SET) !== 0;
    const { command, ...rest } = mapping;
    list.push({ spec: { key, endpoint, writable: settable, ...spec }, property, ...rest, ...settable && command && { command } });
  };
  /** A value of two: what is reported and what is set. */
  const binary = (expose: Expose, key: string, on: unknown, off: unknown): void => {
    const property = expose.property ?? expose.name ?? "";
    add(expose, key, {
      report: (value) => value === on ? true : value === off ? false : undefined,
      command: (value) => ({ [property]: value ? on : off }),
    });
  };
  const words = (expose: Expose, key: string): void => {
    const property = expose.property ?? key, values = (expose.values ?? []).map(String);
    add(expose, key, {
      report: (value) => typeof value === "string" ? value : undefined,
      command: (value) => values.includes(String(value)) ? { [property]: value } : undefined,
    });
  };
  const percentage = (expose: Expose, key: string): void => {
    const property = expose.property ?? key, max = expose.value_max ?? (key === "level" ? 254 : 100);
    add(expose, key, {
      report: (value) => toPercent(value, max),
      command: (value) => ({ [property]: Math.round(Number(value) * max / 99) }),
    }, { unit: "%" });
  };
  const setpoint = (expose: Expose, key: string): void => {
    const property = expose.property ?? key, { value_min: min, value_max: max, value_step: step = 0.5 } = expose;
    const toC = (value: number): number => expose.unit === "°F" ? round((value - 32) / 1.8) : value;
    const bounds = { ...min !== undefined && { min: toC(min) }, ...max !== undefined && { max: toC(max) } };
    add(expose, key, {
      report: (value) => isNumber(value) ? toC(value) : undefined,
      command: (value) => {
        const wanted = expose.unit === "°F" ? Number(value) * 1.8 + 32 : Number(value);
        return { [property]: round(Math.round(wanted / step) * step) };
      },
    }, { unit: "°C", capabilities: { ...bounds, resolution: expose.unit === "°F" ? round(step / 1.8) + 0.01 : step } });
  };

  const composite = (expose: Expose): void => {
    const features = (expose.features ?? []).map((each): Expose => {
      const endpoint = each.endpoint ?? expose.endpoint;
      return endpoint === undefined ? each : { ...each, endpoint };
    });
    for (const feature of features) {
      const { name } = feature;
      if (expose.type === "switch" && name === "state") binary(feature, "switch", feature.value_on ?? "ON", feature.value_off ?? "OFF");
      if (expose.type === "light" && name === "state") binary(feature, "switch", feature.value_on ?? "ON", feature.value_off ?? "OFF");
      if (expose.type === "light" && name === "brightness") percentage(feature, "level");
      if (expose.type === "light" && (name === "color_xy" || name === "color_hs")) {
        add({ ...feature, access: feature.access ?? 7 }, "color", { report: color, command: (value) => ({ color: rgb(value) }) });
      }
      if (expose.type === "lock" && name === "state") binary(feature, "lock", feature.value_on ?? "LOCK", feature.value_off ?? "UNLOCK");
      if (expose.type === "lock" && name === "lock_state") lockState(features, feature);
      if (expose.type === "cover" && name === "position") percentage(feature, "position");
      if (expose.type === "fan" && name === "state") binary(feature, "switch", feature.value_on ?? "ON", feature.value_off ?? "OFF");
      if (expose.type === "fan" && name === "mode") words(feature, "fan_mode");
      if (expose.type !== "climate") continue;
      if (name === "occupied_heating_setpoint" || name === "current_heating_setpoint") setpoint(feature, "heating_setpoint");
      if (name === "occupied_cooling_setpoint") setpoint(feature, "cooling_setpoint");
      if (name === "system_mode") words(feature, "mode");
      if (name === "fan_mode") words(feature, "fan_mode");
      if (name === "running_state") add(feature, "operating_state", { report: running });
      if (name === "local_temperature") single(feature);
    }
  };
  /** A lock's bolt: what is reported counts more than what was set. */
  const lockState = (features: Expose[], feature: Expose): void => {
    const state = features.find((each) => each.name === "state"), at = list.findIndex((each) => each.spec.key === "lock");
    const known = list[at];
    if (!state || !known) return;
    known.ask = known.property; // lock_state cannot be read
    known.property = feature.property ?? "lock_state";
    known.report = (value) => value === "locked" ? true : value === "unlocked" || value === "not_fully_locked" ? false : undefined;
  };
  const single = (expose: Expose): void => {
    const name = expose.name ?? "", unit = expose.unit ?? null;
    if (expose.type === "binary" && BINARIES[name]) {
      const key = BINARIES[name], on = expose.value_on ?? true, off = expose.value_off ?? false;
      // Zigbee2MQTT: contact is true while the door is closed.
      const closed = name === "contact" ? true : undefined;
      add(expose, key, {
        report: (value) => closed !== undefined ? typeof value === "boolean" ? value !== closed : undefined
          : value === on ? true : value === off ? false : undefined,
      });
    } else if (expose.type === "binary" && name === "child_lock") {
      binary(expose, "local_protection", expose.value_on ?? true, expose.value_off ?? false);
    } else if (expose.type === "binary" && ALARMS[name]) {
      list.push(alarm(expose, ALARMS[name]));
    } else if (expose.type === "numeric" && NUMBERS[name]) {
      add(expose, NUMBERS[name], { report: number }, { unit });
    } else if (expose.type === "enum" && name === "action") {
      if (list.some((each) => each.spec.key === "lock")) list.push(lockAlarm(expose));
      else add(expose, "scene", { report: sceneOf });
    }
  };
  for (const expose of exposes) if (expose.features) composite(expose);
  for (const expose of exposes) if (!expose.features) single(expose);
  return list;
}

/** Returns the channels of mappings. Several properties tell their alarms on one channel, where they stand side by side. */
export function channelsOf(maps: Mapping[]): ChannelSpec[] {
  return [...new Map(maps.map(({ spec }) => [`${spec.key} ${spec.endpoint ?? 0}`, spec])).values()];
}

function alarm(expose: Expose, [type, event]: [string, string]): Mapping {
  return {
    spec: { key: "alarm", endpoint: 0, readable: false }, property: expose.property ?? expose.name ?? "",
    report: (value) => ({ type, event, active: value === (expose.value_on ?? true), user: null }),
  };
}

// Actions of locks that people or the cloud know by other words, those of the page of the protocol.
const LOCK_ACTIONS: Record<string, string> = {
  lock: "RF lock operation", unlock: "RF unlock operation", keypad_lock: "Keypad lock operation", keypad_unlock: "Keypad unlock operation",
  manual_lock: "Manual lock operation", manual_unlock: "Manual unlock operation", auto_lock: "Auto lock locked operation",
  lock_failure_invalid_pin_or_id: "Invalid code", unlock_failure_invalid_pin_or_id: "Invalid code", error_jammed: "Lock jammed",
};

/** Returns the alarm channel of a lock: who has done what at it. */
function lockAlarm(expose: Expose): Mapping {
  return {
    spec: { key: "alarm", endpoint: 0, readable: false }, property: expose.property ?? "action",
    report: (value, message) => {
      if (typeof value !== "string" || value === "") return undefined;
      const user = message["action_user"];
      return { type: "Access Control", event: LOCK_ACTIONS[value] ?? value, active: true, user: typeof user === "number" ? user : null };
    },
  };
}

function running(value: unknown): Value | undefined {
  const words: Record<string, string> = { idle: "idle", heat: "heating", cool: "cooling", fan_only: "fan_only" };
  return typeof value === "string" ? words[value] ?? value : undefined;
}

/** Returns the scene of an action such as 2_double, single_left, on or brightness_step_up. */
export function sceneOf(value: unknown): Value | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  const button = /(?:^|_)(?:button_?)?(\d+)(?=_|$)/.exec(value);
  const rest = button ? value.replace(button[0], "").replace(/^_/, "") : value;
  return { scene: button ? Number(button[1]) : 1, attribute: ACTIONS[rest] ?? rest };
}

function rgb(value: Value): object {
  const { red, green, blue } = value as Record<string, number>;
  return { r: red, g: green, b: blue };
}

/** Returns the color of a report: x and y, or hue and saturation, as red, green and blue of full brightness. */
function color(value: unknown): Value | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { x, y, hue, saturation, r, g, b } = value as Record<string, unknown>;
  if (isNumber(r) && isNumber(g) && isNumber(b)) return { red: r, green: g, blue: b };
  if (isNumber(hue) && isNumber(saturation)) {
    const part = (n: number): number => {
      const k = (n + hue / 60) % 6;
      return Math.round(255 * (1 - saturation / 100 * Math.max(0, Math.min(k, 4 - k, 1))));
    };
    return { red: part(5), green: part(3), blue: part(1) };
  }
  if (!isNumber(x) || !isNumber(y) || y === 0) return undefined;
  const [X, Z] = [x / y, (1 - x - y) / y];
  const linear = [3.2406 * X - 1.5372 - 0.4986 * Z, -0.9689 * X + 1.8758 + 0.0415 * Z, 0.0557 * X - 0.204 + 1.057 * Z].map((each) => Math.max(0, each));
  const most = Math.max(...linear) || 1;
  const [red = 0, green = 0, blue = 0] = linear.map((each) => {
    const part = each / most;
    return Math.round(255 * (part <= 0.0031308 ? 12.92 * part : 1.055 * part ** (1 / 2.4) - 0.055));
  });
  return { red, green, blue };
}
