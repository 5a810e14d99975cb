import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { sceneOf } from "../dist/zwave/src/channels.js";
import { Gateway } from "../dist/zwave/src/gateway.js";
import { MockNetwork } from "../dist/zwave/src/mock.js";

/** Waits until a condition holds, for some minutes at most. */
async function until(condition, what) {
  for (const end = Date.now() + 300_000; !condition();) {
    assert.ok(Date.now() < end, what);
    await new Promise((done) => setTimeout(done, 50));
  }
}

test("a scene is which button, and what was done", () => {
  assert.deepEqual(sceneOf({ commandClass: 0x5b, property: "scene", propertyKey: "002" }, 3), { scene: 2, attribute: "pressed_2" });
  assert.equal(sceneOf({ commandClass: 0x5b, property: "slowRefresh" }, 1), undefined);
});

test("a network is interviewed, obeys, reports, and a lock is paired by its PIN", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "zwave-")), told = [];
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const network = new MockNetwork((line) => told.push(line));
  const gateway = await Gateway.open(
    { url: "http://127.0.0.1:9", serial: "", secret: "", dir, firmware: "1", log: () => {}, clockTrusted: () => true }, network.start,
  );
  t.after(() => gateway.close());
  const find = (key) => gateway.devices.find((each) => each.channels.some((channel) => channel.key === key));
  const channel = (key, endpoint = 0) => find(key)?.channels.find((each) => each.key === key && each.endpoint === endpoint);
  const ask = (method, params = {}) => gateway.hub.hub.answer(method, params);
  const command = (key, endpoint, value) => ask("channels.command", {
    command_id: `${key} ${endpoint} ${value}`, device_id: find(key).id, key, endpoint, value,
  });
  const events = (type) => gateway.hub.hub.store.read(1, 10_000, 1 << 24).map(({ text }) => JSON.parse(text)).filter((each) => each.type === type);
  const alarms = () => events("channel.observed").filter(({ data }) => data.key === "alarm").map(({ data }) => data.value);

  await until(() => channel("heating_setpoint") && channel("switch", 2) && channel("smoke"), "the network is not interviewed");

  const pin = /PIN (\d{5})/.exec(told[0])[1];
  assert.deepEqual(await ask("pairing.open", { setup_code: pin }), { result: { status: "open", expires_in: 120 } });
  await until(() => channel("lock")?.value !== undefined && channel("alarm"), "the lock has not joined");
  const lock = find("lock");
  assert.equal(lock.secure, true);
  assert.deepEqual(events("device.added").find(({ device_id }) => device_id === lock.id).data.secure, true);

  await command("heating_setpoint", 0, 21);
  await until(() => channel("heating_setpoint").status === "synchronized", "the thermostat has not obeyed");
  assert.equal(channel("heating_setpoint").value, 21.11, "21 °C are 70 °F");
  await command("switch", 2, true);
  await until(() => channel("switch", 2).status === "synchronized", "the switch has not obeyed");
  assert.equal(channel("switch", 1).value, false);

  await gateway.setCode(lock.id, 1, "123456", "Anna");
  assert.deepEqual(events("credential.created").map(({ data }) => data), [{ slot: 1, label: "Anna" }]);
  assert.deepEqual(events("credential.applied").map(({ data }) => data.state), ["active"]);
  await network.unlockByCode(1);
  await until(() => alarms().length > 0, "nobody has unlocked");
  assert.deepEqual(alarms()[0], { type: "Access Control", event: "Keypad unlock operation", active: true, user: 1 });
  await gateway.setCode(lock.id, 1, undefined, "");
  assert.equal(events("credential.revoked").length, 1);

  await network.smoke(true);
  await until(() => channel("smoke").value === true, "no smoke");
  await network.smoke(false);
  await until(() => channel("smoke").value === false, "still smoke");

  assert.equal((await ask("pairing.open", { setup_code: "MT:Y.K9042C00KA0648G00" })).error.type, "invalid_request");
  assert.equal((await ask("removal.open")).result.status, "open");
  assert.deepEqual(await ask("removal.close"), { result: {} });
});
