// Texts of channels and events. The names of channels and values come with the page (live.Words).

let words = new Map();
let texts = new Map();

export function useWords({ words: wordsByKey, texts: textsByName }) {
  words = new Map(Object.entries(wordsByKey));
  texts = new Map(Object.entries(textsByName));
}

// fill returns a text with values in place of its placeholders, as package text does.
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => truncate(String(values[name] ?? "–"), LONGEST_VALUE));

// formatAlarm returns an alarm for display, and "" for a value that names no event.
function formatAlarm({ type, event, active, user }) {
  if (typeof event !== "string" || event === "") {
    return "";
  }
  let alarm = texts.get(`alarm ${event}`) ?? [type, event].filter((part) => typeof part === "string" && part !== "").join(": ").replaceAll("_", " ");
  if (typeof user === "number") {
    alarm = fill(texts.get("alarm user"), { alarm, user });
  }
  return active === false ? fill(texts.get("alarm ended"), { alarm }) : alarm;
}

const keyName = (key) => words.get(key)?.name ?? String(key).replaceAll("_", " ");

// These are the limits of package live.
const LONGEST_VALUE = 200; // characters
const LONGEST_UNIT = 16; // characters
const LARGEST = 1e15; // this and larger numbers are shown with an exponent

const truncate = (text, longest) => (text.length > longest ? `${[...text.slice(0, 2 * longest)].slice(0, longest).join("")}…` : text);

// formatValue returns a channel's value for display, as package live does.
export function formatValue(key, value, unit = "") {
  switch (typeof value) {
    case "boolean": {
      const word = words.get(key);
      return word?.true ? (value ? word.true : word.false) : String(value);
    }
    case "number": {
      if (key === "level" || key === "position") {
        return `${value === 99 ? 100 : Math.round(value * 100) / 100} %`; // 99 is all there is
      }
      const number = String(Math.abs(value) >= LARGEST ? value : Math.round(value * 100) / 100);
      return unit ? `${number} ${truncate(unit, LONGEST_UNIT)}` : number;
    }
    case "string":
      return truncate(value.replaceAll("_", " "), LONGEST_VALUE);
  }
  if (value === null || value === undefined) {
    return "–";
  }
  if (key === "color") {
    const hex = ["red", "green", "blue"].map((part) => (value[part] ?? 0).toString(16).padStart(2, "0")).join("");
    return value.warm_white > 0 ? `#${hex}, warm white ${value.warm_white}` : `#${hex}`;
  }
  if (key === "alarm" && formatAlarm(value) !== "") {
    return truncate(formatAlarm(value), LONGEST_VALUE);
  }
  const fields = Object.keys(value)
    .sort()
    .filter((name) => value[name] !== null)
    .map((name) => (typeof value[name] === "object" ? `${name} ${JSON.stringify(value[name])}` : `${name} ${value[name]}`.replaceAll("_", " ")))
    .join(", ");
  return truncate(fields, LONGEST_VALUE);
}

// describeEvent returns a description of an event. For an event of an unknown type it returns the
// data.
export function describeEvent({ type, data: eventData }) {
  const data = eventData ?? {};
  switch (type) {
    case "channel.observed":
    case "channel.desired": {
      if (data.key === "alarm" && type === "channel.observed") {
        return formatValue(data.key, data.value);
      }
      const endpoint = data.endpoint > 0 ? ` ${data.endpoint}` : "";
      const verb = type === "channel.desired" ? "set to" : "is";
      return `${keyName(data.key)}${endpoint} ${verb} ${formatValue(data.key, data.value)}`;
    }
    case "hub.connected":
      return "Hub connected";
    case "hub.disconnected":
      return `Hub disconnected${data.reason ? `: ${data.reason}` : ""}`;
    case "hub.events_skipped":
      return data.reason
        ? `Event ${data.from} of the hub could not be read: ${data.reason}`
        : `The hub lost events ${data.from} to ${data.to}`;
    case "portal.gap":
      return "Events are missing here. See the hub's event log";
    case "portal.away":
      return `Offline since ${data.since}. See the hubs' event logs`;
    case "device.added":
      return `Device joined: ${data.name || "unnamed device"}`;
    case "device.updated":
      return `Device updated: ${data.name || "unnamed device"}`;
    case "device.available":
      return "Device available again";
    case "device.unavailable":
      return "Device out of reach";
    case "device.forgotten":
      return "Device removed";
  }
  if (texts.has(`event ${type}`)) {
    return fill(texts.get(`event ${type}`), data);
  }
  const text = JSON.stringify(data);
  return text === "{}" ? "" : text;
}
