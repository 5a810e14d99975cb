import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Hub, HubError } from "../dist/index.js";

/** Opens a hub that has no cloud, and returns it with what it stores as events. */
async function open(t, radio, more = {}) {
  const dir = more.dir ?? mkdtempSync(join(tmpdir(), "hub-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const hub = await Hub.open(
    { url: "http://127.0.0.1:1", serial: "", secret: "", dir, firmware: "1", log: () => {}, clockTrusted: () => true, ...more },
    radio,
  );
  const told = () => hub.store.read(1, 500, 1 << 20).map(({ text }) => JSON.parse(text))
    .map(({ type, data }) => [type, data.value ?? data.status ?? data.name]);
  const command = (value, id) => hub.answer("channels.command", {
    command_id: id, device_id: 1, key: "heating_setpoint", endpoint: 0, value,
  });
  return { hub, dir, told, command };
}

const THERMOSTAT = {
  name: "Hall",
  channels: [{ key: "heating_setpoint", writable: true, capabilities: { min: 5, max: 35, resolution: 0.5556 } }],
};

test("a command that the device rounds is synchronized, and a repeat of it does not run", async (t) => {
  let driven = 0;
  const { hub, told, command } = await open(t, { drive: async () => { driven++; } });
  t.after(() => hub.close());
  const device = await hub.put("t", THERMOSTAT);
  const answers = await Promise.all([command(21, "c1"), command(21, "c1")]);
  assert.deepEqual(answers[0], answers[1]);
  assert.equal(answers[0].result.channel.status, "pending");
  await hub.observe(device, "heating_setpoint", 0, 21.11);
  assert.equal(device.channels[0].status, "synchronized");
  assert.deepEqual(await command(21, "c1"), answers[0]);
  assert.equal(driven, 1);
  assert.deepEqual(told(), [
    ["device.added", "Hall"], ["channel.desired", 21], ["channel.observed", 21.11],
  ]);
});

test("what a command cannot do is answered, and only hub_unavailable is not remembered", async (t) => {
  let error = new HubError("hub_unavailable", "down");
  const { hub, command } = await open(t, { drive: async () => {}, check: () => { if (error) throw error; } });
  t.after(() => hub.close());
  await hub.put("t", THERMOSTAT);
  assert.equal((await command(40, "c0")).error.type, "invalid_request");
  assert.equal((await command(20, "c1")).error.type, "hub_unavailable");
  error = new HubError("command_refused", "no");
  assert.equal((await command(20, "c1")).error.type, "command_refused");
  error = undefined;
  assert.equal((await command(20, "c1")).error.type, "command_refused");
});

test("a restart abandons a pending command and answers its repeat as before", async (t) => {
  const first = await open(t, { drive: () => new Promise(() => {}) });
  await first.hub.put("t", THERMOSTAT);
  const answer = await first.command(20, "c1");
  await first.hub.close();
  const { hub, told, command } = await open(t, { drive: () => assert.fail("driven again") }, { dir: first.dir });
  t.after(() => hub.close());
  assert.deepEqual(await command(20, "c1"), answer);
  assert.equal(hub.devices[0].channels[0].status, "failed");
  assert.deepEqual(told().at(-1), ["channel.status", "failed"]);
});

test("a device that left does not give its ID to another", async (t) => {
  const { hub } = await open(t, { drive: async () => {} });
  t.after(() => hub.close());
  await hub.remove(await hub.put("node-1", THERMOSTAT));
  assert.equal((await hub.put("node-1", THERMOSTAT)).id, 2);
});

test("a clock that jumps forgets no command, and without a clock none runs", async (t) => {
  let trusted = false, driven = 0;
  const { hub, command } = await open(t, { drive: async () => { driven++; } }, { clockTrusted: () => trusted });
  t.after(() => hub.close());
  await hub.put("t", THERMOSTAT);
  assert.equal((await command(20, "c1")).error.type, "hub_unavailable");
  trusted = true;
  t.mock.timers.enable({ apis: ["Date"], now: Date.parse("2040-01-01") });
  await command(20, "c1");
  t.mock.timers.setTime(Date.parse("2027-01-01"));
  await command(21, "c2");
  t.mock.timers.setTime(Date.parse("2027-01-01T23:00:00Z"));
  await command(22, "c3");
  await command(20, "c1");
  assert.equal(driven, 3);
});
