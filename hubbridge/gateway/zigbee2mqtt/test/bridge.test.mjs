import aedes from "aedes";
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Bridge } from "../dist/zigbee2mqtt/src/bridge.js";
import { mappings, sceneOf } from "../dist/zigbee2mqtt/src/exposes.js";
import { KINDS, standIn } from "./helpers/standin.mjs";

const LONG = 300_000;

/** Waits until a condition holds, for some minutes at most. */
async function until(condition, what) {
  for (const end = Date.now() + LONG; !condition();) {
    assert.ok(Date.now() < end, what);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** Starts a broker for MQTT in this process. Returns its address, and what stops it. */
async function startBroker(t) {
  const broker = aedes(), server = createServer(broker.handle);
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const stop = () => new Promise((done) => broker.close(() => server.close(done)));
  t.after(() => broker.closed || stop());
  return [`mqtt://127.0.0.1:${server.address().port}`, stop];
}

/** Returns the channels of a kind with the values of its message. */
function channels(kind, message = KINDS[kind][1]) {
  return Object.fromEntries(mappings(KINDS[kind][0])
    .map(({ spec, property, report }) => [`${spec.key} ${spec.endpoint}`, report(message[property], message)]));
}

test("what a device exposes becomes channels", () => {
  const want = {
    plug: { "switch 0": true, "power 0": 12.5, "energy 0": 3, "voltage 0": 230, "current 0": 0.05 },
    two_gang: { "switch 1": true, "switch 2": false },
    named_gang: { "switch 1": false, "switch 2": true },
    bulb: { "switch 0": true, "level 0": 99 },
    color_bulb: { "switch 0": true, "level 0": 50, "color 0": { red: 255, green: 0, blue: 0 } },
    blind: { "position 0": 99 },
    radiator: { "heating_setpoint 0": 21, "temperature 0": 20.5, "mode 0": "heat", "operating_state 0": "heating", "local_protection 0": false, "battery 0": 50 },
    thermostat_f: { "heating_setpoint 0": 21.11, "temperature 0": 69, "mode 0": "off", "operating_state 0": "idle" },
    fan: { "switch 0": true, "fan_mode 0": "low" },
    motion: { "motion 0": false, "luminance 0": 40, "battery 0": 90 },
    leak: { "leak 0": false, "tamper 0": false },
    climate_sensor: { "temperature 0": 21.3, "humidity 0": 45, "pressure 0": 1010 },
  };
  for (const [kind, each] of Object.entries(want)) assert.deepEqual(channels(kind), each, kind);
  assert.equal(channels("door")["contact 0"], false, "contact true means closed in Zigbee2MQTT");
  assert.equal(channels("door", { contact: false })["contact 0"], true);
  assert.equal(channels("lock")["lock 0"], true);
});

test("a command is what Zigbee2MQTT takes", () => {
  const command = (kind, key, value) => mappings(KINDS[kind][0]).find(({ spec }) => spec.key === key).command(value);
  assert.deepEqual(command("bulb", "level", 99), { brightness: 254 });
  assert.deepEqual(command("blind", "position", 0), { position: 0 });
  assert.deepEqual(command("thermostat_f", "heating_setpoint", 21), { occupied_heating_setpoint: 70 });
  assert.deepEqual(command("lock", "lock", false), { state: "UNLOCK" });
  assert.equal(command("radiator", "mode", "party"), undefined);
  assert.equal(mappings(KINDS.door[0])[0].spec.writable, false);
});

test("an action is a scene", () => {
  assert.deepEqual(sceneOf("single"), { scene: 1, attribute: "pressed" });
  assert.deepEqual(sceneOf("2_double"), { scene: 2, attribute: "pressed_2" });
  assert.deepEqual(sceneOf("button_4_hold"), { scene: 4, attribute: "held" });
  assert.deepEqual(sceneOf("brightness_step_up"), { scene: 1, attribute: "brightness_step_up" });
  assert.equal(sceneOf(""), undefined);
});

test("50 devices of 20 kinds: they come, report, obey, go away and leave", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "bridge-")), [broker, stopBroker] = await startBroker(t);
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const options = { url: "http://127.0.0.1:9", serial: "", secret: "", dir: join(dir, "hub"), broker, firmware: "1", log: () => {}, clockTrusted: () => true };
  const bridge = await Bridge.open(options);
  t.after(() => bridge.close());
  await until(() => bridge.client.connected, "the broker is not reached");
  const zigbee = await standIn(broker);
  t.after(() => zigbee.close());
  const device = (name) => bridge.devices.find((each) => each.name === name);
  const channel = (name, key) => device(name)?.channels.find((each) => each.key === key);
  const ask = (method, params = {}) => bridge.hub.hub.answer(method, params);
  const events = (type) => bridge.hub.hub.store.read(1, 10_000, 1 << 24).map(({ text }) => JSON.parse(text)).filter((each) => each.type === type);

  await until(() => channel("climate_sensor/36", "temperature")?.value === 21.3, "the last devices have not reported");
  await until(() => zigbee.told.some(([name]) => name === "lock/6/get"), "the lock was not asked");
  assert.deepEqual(zigbee.told.find(([name]) => name === "lock/6/get")[1], { state: "" }, "lock_state cannot be read");
  assert.equal(bridge.devices.length, 50);
  assert.equal(new Set(bridge.devices.map((each) => each.model)).size, 20);

  const command = { command_id: "c1", device_id: device("lock/6").id, key: "lock", endpoint: 0, value: false };
  assert.equal((await ask("channels.command", command)).result.channel.status, "pending");
  await until(() => channel("lock/6", "lock").status === "synchronized", "the lock has not obeyed");

  assert.deepEqual(await ask("pairing.open", { setup_code: "12345" }), { result: { status: "open", expires_in: 120 } });
  await ask("pairing.close");
  assert.deepEqual(zigbee.told.filter(([name]) => name.endsWith("permit_join")).map(([, { time }]) => time), [120, 0]);

  await zigbee.report(zigbee.devices.find((each) => each.kind === "smoke"), { smoke: true, battery_low: true });
  await zigbee.publish("button/17", { action: "double" });
  await until(() => channel("button/17", "scene").value?.attribute === "pressed_2", "no scene");
  assert.equal(channel("smoke/13", "smoke").value, true);
  assert.equal(events("channel.observed").filter(({ data }) => data.key === "alarm").length, 1);

  await zigbee.publish("plug/0/availability", { state: "offline" }, true);
  await until(() => !device("plug/0").available, "the plug is still available");
  assert.deepEqual(await ask("devices.forget", { device_id: device("plug/0").id }), { result: {} });
  assert.equal(device("plug/0"), undefined);
  zigbee.devices.pop();
  await zigbee.list();
  await until(() => !device("fan/49"), "the list is not taken");
  assert.equal(bridge.devices.length, 48);

  await stopBroker();
  await until(() => !bridge.ready(), "the broker is away");
  const answer = await ask("channels.command", { ...command, command_id: "c2" });
  assert.equal(answer.error.type, "hub_unavailable");
  assert.ok(bridge.devices.length === 48, "a broker that is away takes no device with it");
});

test("alarms of a device have one channel, and end also after a restart", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "bridge-")), [broker] = await startBroker(t);
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const options = { url: "http://127.0.0.1:9", serial: "", secret: "", dir: join(dir, "hub"), broker, firmware: "1", log: () => {}, clockTrusted: () => true };
  const zigbee = await standIn(broker, 0);
  t.after(() => zigbee.close());
  const binary = (name) => ({ type: "binary", name, property: name, access: 1, value_on: true, value_off: false });
  const exposes = ["gas", "battery_low", "vibration", "sos", "water_leak"].map(binary);
  zigbee.devices.push({ ieee_address: "0x1", friendly_name: "detector", type: "EndDevice", state: {}, definition: { model: "detector", exposes } });
  const open = async () => {
    const bridge = await Bridge.open(options);
    t.after(() => bridge.close());
    await until(() => bridge.ready(), "Zigbee2MQTT is not reached");
    await zigbee.list();
    await until(() => bridge.known.size === 1, "the list is not taken");
    return bridge;
  };
  const told = (bridge) => bridge.hub.hub.store.read(1, 10_000, 1 << 24).map(({ text }) => JSON.parse(text))
    .filter(({ type }) => type === "channel.observed").map(({ data: { key, value } }) => key === "alarm" ? [value.event, value.active] : [key, value]);
  const want = [["Combustible gas detected", true], ["Panic alert", true], ["leak", true]];

  const first = await open();
  assert.deepEqual(first.devices[0].channels.map(({ key, endpoint }) => `${key}/${endpoint}`), ["alarm/0", "leak/0"]);
  for (let n = 0; n < 2; n++) await zigbee.publish("detector", { gas: true, battery_low: false, sos: true, water_leak: true });
  await until(() => told(first).length === 3, "no alarm");
  assert.deepEqual(told(first), want);
  await first.close();

  const second = await open();
  for (let n = 0; n < 2; n++) await zigbee.publish("detector", { gas: false, battery_low: false, sos: true, water_leak: false });
  await until(() => told(second).length === 5, "the end is lost");
  assert.deepEqual(told(second), [...want, ["Combustible gas detected", false], ["leak", false]]);
});
