// The page "Your radios" says what the gateways do: each channel of a row comes from what the row names, and each channel is in a row.
import { CommandClasses } from "@zwave-js/core";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { mappings as ofExposes } from "../../zigbee2mqtt/dist/zigbee2mqtt/src/exposes.js";
import { KINDS } from "../../zigbee2mqtt/test/helpers/standin.mjs";
import { mappings as ofNode } from "../../zwave/dist/zwave/src/channels.js";

const page = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const table = page.slice(page.indexOf("## Channels"), page.indexOf("| event |"));
const rows = table.split("\n").filter((line) => line.startsWith("| `")).map((line) => line.split("|").slice(1, 4));
const words = (cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, word]) => word);
const row = (key) => rows.find(([keys]) => words(keys).includes(key)) ?? assert.fail(`no row has ${key}`);
const keysOf = (column) => rows.filter((cells) => cells[column].trim() !== "").flatMap(([keys]) => words(keys)).sort();

test("of Z-Wave", () => {
  const CC = CommandClasses, mode = { states: { 0: "Off" } };
  const values = [
    ["Door Lock", "currentMode"], ["Lock", "locked"], ["Barrier Operator", "currentState"], ["Binary Switch", "currentValue"],
    ["Multilevel Switch", "currentValue"], ["Multilevel Switch", "currentValue", undefined, {}, 0x11], ["Window Covering", "currentValue", 1],
    ["Color Switch", "currentColor"], ["Thermostat Mode", "mode", undefined, mode], ["Thermostat Setpoint", "setpoint", 1, { unit: "°F" }],
    ["Thermostat Setpoint", "setpoint", 2, { unit: "°C" }], ["Thermostat Fan Mode", "mode", undefined, mode],
    ["Thermostat Operating State", "state"], ["Thermostat Fan State", "state"], ["Protection", "local"], ["Battery", "level"],
    ...["Air temperature", "Humidity", "Illuminance", "Carbon dioxide level"].map((name) => ["Multilevel Sensor", name]),
    ...["Motion", "Door/Window", "Water", "Smoke", "CO", "Heat", "Tamper"].map((name) => ["Binary Sensor", name]),
    ...[[1, "Sensor status"], [2, "Sensor status"], [4, "Heat sensor status"], [5, "Sensor status"], [6, "Door state"],
      [7, "Motion sensor status"], [7, "Cover status"]]
      .map(([notificationType, key]) => ["Notification", "", key, { ccSpecific: { notificationType } }]),
    ...[[1, 0], [1, 2], [1, 4], [1, 5], [2, 0], [3, 0]]
      .map(([meterType, scale]) => ["Meter", "value", undefined, { ccSpecific: { meterType, scale, rateType: 1 } }]),
  ];
  const found = new Set();
  const add = (key, name) => {
    assert.ok(row(key)[1].includes(name), `${key}: the row does not name ${name}`);
    found.add(key);
  };
  const node = (supported, ids, metadata = {}, generic = 0) => ({
    getDefinedValueIDs: () => ids, getValueMetadata: () => metadata, supportsCC: (cc) => cc === CC[supported],
    getEndpoint: () => ({ deviceClass: { generic: { key: generic }, specific: { key: 5 } } }),
  });
  for (const [name, property, propertyKey, metadata, generic] of values) {
    const maps = ofNode(node("", [{ commandClass: CC[name], endpoint: 0, property, propertyKey }], metadata, generic));
    assert.equal(maps.length, 1, `${name} ${property} ${propertyKey ?? ""}`);
    add(maps[0].spec.key, name);
  }
  for (const name of ["Notification", "Entry Control", "Central Scene", "Scene Activation"]) {
    for (const { spec } of ofNode(node(name, []))) add(spec.key, name);
  }
  assert.deepEqual([...found].sort(), keysOf(1));
  const [other] = ofNode(node("", [{ commandClass: CC["Multilevel Sensor"], endpoint: 0, property: "Dew point" }]));
  assert.ok(row("temperature")[1].includes(other.spec.key));
});

test("of Zigbee2MQTT", () => {
  const single = (type, name) => ({ type, name, property: name, access: 7, values: [] });
  const climate = (name) => ({ type: "climate", features: [single(/setpoint|temperature/.test(name) ? "numeric" : "enum", name)] });
  const exposes = [
    ...Object.values(KINDS).flatMap(([each]) => each),
    ...["current_heating_setpoint", "occupied_cooling_setpoint", "fan_mode", "running_state"].map(climate),
    { type: "light", features: [{ type: "composite", name: "color_hs", property: "color", features: [] }] },
    ...["presence", "carbon_monoxide", "tamper", "sos", "child_lock"].map((name) => single("binary", name)),
    ...["pm25", "voc"].map((name) => single("numeric", name)),
  ];
  const found = new Set(), named = new Set();
  for (const expose of exposes) {
    for (const { spec, property } of ofExposes([expose])) {
      const names = [expose, ...expose.features ?? []].filter((each) => each.property === property).map((each) => each.name);
      const known = words(row(spec.key)[2]).filter((each) => names.includes(each));
      assert.ok(known.length > 0, `${spec.key}: the row names none of ${names}`);
      known.forEach((name) => named.add(name));
      found.add(spec.key);
    }
  }
  assert.deepEqual([...found].sort(), keysOf(2));
  const types = ["switch", "light", "fan", "lock", "cover", "climate"]; // and what a row says in passing
  const missing = rows.flatMap(([, , cell]) => words(cell)).filter((name) => !named.has(name) && !types.includes(name));
  assert.deepEqual(missing, ["value_step", "action_user", "2_double", "pressed_2"]);
});
