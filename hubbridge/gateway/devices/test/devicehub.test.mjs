import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { DeviceHub } from "../../zigbee2mqtt/dist/devices/devicehub.js";

/** Opens a hub that has no cloud, and returns it with what it stores as events. */
async function open(t, radio, dir = mkdtempSync(join(tmpdir(), "hub-"))) {
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const hub = await DeviceHub.open(
    { url: "http://127.0.0.1:1", serial: "", secret: "", dir, firmware: "1", log: () => {}, clockTrusted: () => true },
    { ready: () => true, check: () => {}, ...radio },
  );
  t.after(() => hub.close().catch(() => undefined));
  const told = async () => {
    await hub.hub.store.synced();
    return hub.hub.store.read(1, 500, 1 << 20).map(({ text }) => JSON.parse(text)).map(({ type, data }) => [type, data.value ?? data.status ?? data.name]);
  };
  const command = (value, id) => hub.hub.answer("channels.command", { command_id: id, device_id: 1, key: "heating_setpoint", endpoint: 0, value });
  return { hub, dir, told, command };
}

const THERMOSTAT = {
  name: "Hall", manufacturer: "", model: "",
  channels: [{ key: "heating_setpoint", writable: true, capabilities: { min: 5, max: 35, resolution: 0.5556 } }],
};

test("a command that the device rounds is synchronized, and one beyond its bounds is rejected", async (t) => {
  let driven = 0;
  const { hub, told, command } = await open(t, { drive: async () => { driven++; } });
  const device = await hub.put("t", THERMOSTAT);
  assert.equal((await command(40, "c0")).error.type, "invalid_request");
  assert.equal((await command(21, "c1")).result.channel.status, "pending");
  await hub.observe(device, "heating_setpoint", 0, 21.11);
  assert.equal(device.channels[0].status, "synchronized");
  assert.deepEqual(await told(), [["device.added", "Hall"], ["channel.desired", 21], ["channel.observed", 21.11]]);
  assert.equal(driven, 1);
});

test("a restart gives a pending command up and does not drive it again", async (t) => {
  const first = await open(t, { drive: () => new Promise(() => {}) });
  await first.hub.put("t", THERMOSTAT);
  const answer = await first.command(20, "c1");
  await first.hub.close();
  const { hub, told, command } = await open(t, { drive: () => assert.fail("driven again") }, first.dir);
  assert.deepEqual(await command(20, "c1"), answer);
  assert.equal(hub.devices[0].channels[0].status, "failed");
  assert.deepEqual((await told()).at(-1), ["channel.status", "failed"]);
});

test("an interview that changes a channel keeps the command that it waits for", async (t) => {
  let fail;
  const { hub, command } = await open(t, { drive: () => new Promise((_, reject) => { fail = reject; }) });
  const device = await hub.put("t", THERMOSTAT);
  await command(20, "c1");
  await hub.put("t", { ...THERMOSTAT, channels: [{ key: "battery" }, { key: "heating_setpoint", writable: true }], secure: true });
  fail(new Error("not reached"));
  await new Promise(setImmediate);
  assert.deepEqual(device.channels.map(({ key, status }) => [key, status]), [["battery", "unknown"], ["heating_setpoint", "failed"]]);
  await hub.put("t", THERMOSTAT);
  assert.equal("secure" in device, false);
});

test("a device that left does not give its ID to another", async (t) => {
  const { hub } = await open(t, {});
  await hub.remove(await hub.put("node-1", THERMOSTAT));
  assert.equal((await hub.put("node-1", THERMOSTAT)).id, 2);
});

test("a window that a restart interrupts opens again for the rest of its time, until a device joins", async (t) => {
  const calls = [];
  const radio = {
    openPairing: async (code) => { calls.push(["open", code]); }, closePairing: async (reason) => { calls.push(["close", reason]); },
  };
  const first = await open(t, radio);
  assert.deepEqual(await first.hub.hub.answer("pairing.open", { setup_code: " 12345 " }), { result: { status: "open", expires_in: 120 } });
  await first.hub.close();
  const second = await open(t, radio, first.dir);
  await second.hub.openAgain();
  await second.hub.put("t", THERMOSTAT);
  await second.hub.close();
  const third = await open(t, radio, first.dir);
  await third.hub.openAgain();
  assert.deepEqual(calls, [["open", "12345"], ["open", "12345"], ["close", "joined"]]);
});
