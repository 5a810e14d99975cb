// What events say, in the words that the page was given.

let words = new Map();

export function useWords(given) {
  words = new Map(Object.entries(given));
}

const named = (key) => words.get(key)?.name ?? String(key).replaceAll("_", " ");

const LONGEST = 200; // characters of what a hub says
const LONGEST_UNIT = 16;
const LARGEST = 1e15; // the first number that is written with an exponent

const clip = (text, longest) => (text.length > longest ? `${[...text.slice(0, 2 * longest)].slice(0, longest).join("")}…` : text);

// sayValue writes a channel's value as the server does.
export function sayValue(key, value, unit = "") {
  switch (typeof value) {
    case "boolean": {
      const word = words.get(key);
      return word?.true ? (value ? word.true : word.false) : String(value);
    }
    case "number": {
      const number = String(Math.abs(value) >= LARGEST ? value : Math.round(value * 100) / 100);
      return unit ? `${number} ${clip(unit, LONGEST_UNIT)}` : number;
    }
    case "string":
      return clip(value.replaceAll("_", " "), LONGEST);
  }
  if (value === null || value === undefined) {
    return "–";
  }
  if (key === "color") {
    const hex = ["red", "green", "blue"].map((part) => (value[part] ?? 0).toString(16).padStart(2, "0")).join("");
    return value.warm_white > 0 ? `#${hex}, warm white ${value.warm_white}` : `#${hex}`;
  }
  const fields = Object.keys(value)
    .sort()
    .filter((name) => value[name] !== null)
    .map((name) => (typeof value[name] === "object" ? `${name} ${JSON.stringify(value[name])}` : `${name} ${value[name]}`.replaceAll("_", " ")))
    .join(", ");
  return clip(fields, LONGEST);
}

// sayEvent writes what an event tells. Types that nobody knows yet show their data.
export function sayEvent({ type, data: said }) {
  const data = said ?? {};
  switch (type) {
    case "channel.observed":
    case "channel.desired": {
      const endpoint = data.endpoint > 0 ? ` ${data.endpoint}` : "";
      const verb = type === "channel.desired" ? "was asked to be" : "is";
      return `${named(data.key)}${endpoint} ${verb} ${sayValue(data.key, data.value)}`;
    }
    case "hub.connected":
      return "The hub connected";
    case "hub.disconnected":
      return `The hub disconnected${data.reason ? `: ${data.reason}` : ""}`;
    case "hub.events_skipped":
      return `Events ${data.from} to ${data.to} of the hub were lost`;
    case "portal.gap":
      return "Events were missed here: see the hub's event log";
    case "portal.away":
      return `Away since ${data.since}: see the event logs of the hubs`;
    case "device.added":
      return `Joined as ${data.name || "a device without a name"}`;
    case "device.updated":
      return `Changed: it is ${data.name || "a device without a name"} now`;
    case "device.available":
      return "Can be reached again";
    case "device.unavailable":
      return "Cannot be reached";
    case "device.forgotten":
      return "Removed from the hub";
  }
  const text = JSON.stringify(data);
  return text === "{}" ? "" : text;
}
