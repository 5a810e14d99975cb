// Texts of channels and events. The names of channels and values come with the page (live.Words).

import { hasText, setTexts, textOf, truncate } from "./texts.js";

let words = new Map();
let fixedUnits = new Map(); // of channels that always have the same unit
let rules = null; // live.SeverityRules

export function useWords({ words: wordsByKey, texts: textsByName, units, severities }) {
  words = new Map(Object.entries(wordsByKey));
  setTexts(textsByName);
  fixedUnits = new Map(Object.entries(units));
  rules = severities;
}

// formatAlarm returns an alarm for display, and "" for a value that names neither an event nor a
// type.
function formatAlarm({ type, event, active, user }) {
  let alarm = "";
  if (typeof event === "string" && hasText(`alarm ${event}`)) {
    alarm = textOf(`alarm ${event}`);
  } else {
    const parts = [type === event ? "" : type, event].filter((part) => typeof part === "string" && part !== "");
    alarm = parts.join(": ").replaceAll("_", " ").replace(/^./u, (first) => first.toUpperCase());
  }
  if (alarm === "") {
    return "";
  }
  if (typeof user === "number") {
    alarm = textOf("alarm user", { alarm, user });
  }
  return active === false ? textOf("alarm ended", { alarm }) : alarm;
}

// formatScene returns a scene for display, and "" for a value that names no scene.
function formatScene({ scene, attribute }) {
  if (typeof scene !== "number") {
    return "";
  }
  return typeof attribute === "string" && attribute !== "" ? textOf("scene attribute", { scene, attribute: attribute.replaceAll("_", " ") }) : textOf("scene", { scene });
}

const keyName = (key) => words.get(key)?.name ?? String(key).replaceAll("_", " ");

// These are the limits of the pages.
const LONGEST_VALUE = 200; // characters
const LONGEST_UNIT = 16; // characters
const LARGEST = 1e15; // this and larger numbers are shown with an exponent

// formatValue returns a channel's value for display, as the pages do.
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
    return value.warm_white > 0 ? textOf("warm-white", { color: `#${hex}`, white: value.warm_white }) : `#${hex}`;
  }
  if (key === "alarm" && formatAlarm(value) !== "") {
    return truncate(formatAlarm(value), LONGEST_VALUE);
  }
  if (key === "scene" && formatScene(value) !== "") {
    return truncate(formatScene(value), LONGEST_VALUE);
  }
  const fields = Object.keys(value)
    .sort()
    .filter((name) => value[name] !== null)
    .map((name) => (typeof value[name] === "object" ? `${name} ${JSON.stringify(value[name])}` : `${name} ${value[name]}`.replaceAll("_", " ")))
    .join(", ");
  return truncate(fields, LONGEST_VALUE);
}

// describeEvent returns a description of an event, as the pages do. units are the units of the
// device's channels, by key and endpoint. For an event of an unknown type it returns the data.
export function describeEvent({ type, data: eventData }, units = {}) {
  let data = eventData ?? {};
  const named = typeof data.name === "string" && data.name.trim() !== "";
  switch (type) {
    case "channel.observed":
    case "channel.desired":
      return describeChannel(data, units, type === "channel.desired");
    case "hub.disconnected": {
      const known = `disconnect ${data.reason}`;
      data = { reason: hasText(known) ? `${textOf(known)} (${data.reason})` : data.reason || textOf("reason unknown") };
      break;
    }
    case "hub.log_reset":
      data = { reason: hasText(`reset ${data.reason}`) ? textOf(`reset ${data.reason}`) : data.reason || textOf("reason unknown") };
      break;
    case "feed.gap":
      data = { reason: textOf(`gap ${data.reason}`) };
      break;
    case "hub.events_skipped":
      if (typeof data.reason === "string") {
        return textOf("event hub.events_skipped one", data);
      }
      break;
    case "device.added":
    case "device.updated":
      data = named ? data : { name: textOf("unnamed device") };
      break;
    case "device.forgotten":
      if (!named) {
        return textOf("event device.forgotten nobody");
      }
  }
  if (hasText(`event ${type}`)) {
    return textOf(`event ${type}`, data);
  }
  const text = JSON.stringify(data);
  return text === "{}" ? "" : text;
}

// describeChannel returns the text of a report of a channel, or of a command.
function describeChannel({ key, endpoint, value }, units, command) {
  if ((key === "alarm" || key === "scene") && !command) {
    return formatValue(key, value);
  }
  const known = `${command ? "command " : ""}${key} ${value}`;
  if (typeof value === "boolean" && hasText(known)) {
    const sentence = textOf(known);
    return endpoint > 0 ? textOf("channel endpoint", { name: keyName(key), endpoint, text: sentence }) : sentence;
  }
  const unit = units[`${key}/${endpoint ?? 0}`] || fixedUnits.get(key);
  const name = keyName(key) + (endpoint > 0 ? ` ${endpoint}` : "");
  return textOf(command ? "channel desired" : "channel observed", { name, value: formatValue(key, value, unit) });
}

// severityOfAlarm returns the severity of a report of an alarm channel, as package attention reads its
// words.
function severityOfAlarm({ type, event, active }) {
  if (active === false) {
    return 1;
  }
  const plain = (word) => (["string", "number"].includes(typeof word) ? String(word).toLowerCase().replace(/[^a-z0-9]/g, "") : "");
  const found = (key) => (Object.hasOwn(rules.alarms, key) ? rules.alarms[key] : 1);
  if (rules.vague.includes(plain(event))) {
    return found(plain(type));
  }
  return found(/[a-z]/.test(plain(event)) ? plain(event) : `${plain(type)}/${plain(event)}`);
}

// severityOf returns the severity of an event, as the pages do: 0 routine, 1 notable, 2
// warning, 3 alarm.
export function severityOf({ type, data }) {
  if (type !== "channel.observed") {
    return rules.types[type] ?? 1;
  }
  const { key, value } = data ?? {};
  if (Object.hasOwn(rules.triggered, key)) {
    return value === true ? rules.triggered[key] : 1;
  }
  if (key === "battery" && typeof value === "number" && value < rules.low_battery) {
    return 2;
  }
  if (key === "alarm") {
    return severityOfAlarm(value ?? {});
  }
  return rules.reported[key] ?? 0;
}
