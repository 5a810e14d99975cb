import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Hub, HubError } from "../dist/index.js";

/** Opens a hub that has no cloud. */
async function open(t, handlers, more = {}) {
  const dir = more.dir ?? mkdtempSync(join(tmpdir(), "hub-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const hub = await Hub.open({
    url: "http://127.0.0.1:1", serial: "", secret: "", dir, firmware: "1", log: () => {}, clockTrusted: () => true, ...more,
  }, handlers);
  t.after(() => hub.close().catch(() => undefined));
  return { hub, dir, command: (id) => hub.answer("channels.command", { command_id: id }) };
}

test("the README has the example whole", () => {
  const [readme, example] = ["../README.md", "../example/hub.mjs"].map((each) => readFileSync(new URL(each, import.meta.url), "utf8"));
  assert.ok(readme.includes(`\`\`\`js\n${example}\`\`\``), "README.md and example/hub.mjs differ");
  assert.ok(example.trim().split("\n").length <= 65, "a hub in 65 lines");
});

test("a command runs once, also after a restart, and its changes are stored with its answer", async (t) => {
  let ran = 0;
  const handlers = (hub) => ({
    "channels.command"() {
      ran++;
      void hub().change({ state: ran }, [{ type: "channel.desired", device_id: 1, data: {} }]);
      return { channel: { key: "lock", endpoint: 0, value: true, writable: true } };
    },
  });
  const first = await open(t, handlers(() => first.hub));
  const answers = await Promise.all([first.command("c1"), first.command("c1")]);
  assert.deepEqual(answers[0], { result: { channel: { key: "lock", endpoint: 0, value: true } } });
  assert.deepEqual(answers[0], answers[1]);
  await first.hub.store.synced();
  const line = readFileSync(join(first.dir, "journal"), "utf8").trim().split("\n").at(-1);
  assert.match(line, /channel\.desired.*command\/c1/, "one line has both");
  await first.hub.close();
  const again = await open(t, handlers(() => again.hub), { dir: first.dir });
  assert.deepEqual([await again.command("c1"), ran, again.hub.get("state")], [answers[0], 1, 1]);
});

test("what a command cannot do is answered, and only hub_unavailable is not remembered", async (t) => {
  let error = new HubError("hub_unavailable", "down");
  const { command } = await open(t, { "channels.command": () => { if (error) throw error; return { channel: {} }; } });
  assert.equal((await command("c1")).error.type, "hub_unavailable");
  error = new HubError("command_refused", "no");
  assert.equal((await command("c1")).error.type, "command_refused");
  error = undefined;
  assert.equal((await command("c1")).error.type, "command_refused");
});

test("a clock that jumps forgets no command, and without a clock none runs", async (t) => {
  let trusted = false, ran = 0;
  const { command } = await open(t, { "channels.command": () => { ran++; return { channel: {} }; } }, { clockTrusted: () => trusted });
  assert.equal((await command("c1")).error.type, "hub_unavailable");
  trusted = true;
  t.mock.timers.enable({ apis: ["Date"], now: Date.parse("2040-01-01") });
  await command("c1");
  t.mock.timers.setTime(Date.parse("2027-01-01"));
  await command("c2");
  t.mock.timers.setTime(Date.parse("2027-01-01T23:00:00Z"));
  await command("c3");
  await command("c1");
  assert.equal(ran, 3);
  t.mock.timers.setTime(Date.parse("2027-01-03"));
  await command("c4");
  await command("c1");
  assert.equal(ran, 5, "after a day it may run again");
});

test("a list leaves states out, and a number that is not known yet is not named", async (t) => {
  const { hub } = await open(t, { "devices.list": () => ({ devices: [{ id: 1, channels: [{ key: "lock", value: true }] }] }) });
  await hub.change({}, [{ type: "device.added", device_id: 1, data: {} }]);
  assert.deepEqual(await hub.answer("devices.list", {}), { result: { devices: [{ id: 1, channels: [{ key: "lock" }] }], last_event: 1 } });
  assert.equal((await hub.answer("toString", {})).error.type, "unknown_method");
});
