import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { certificateRequest, newKey } from "../dist/csr.js";
import { Store } from "../dist/store.js";

const ROOM = { events: 1000, bytes: 1 << 20 };

/** Returns a folder that goes with the test. */
function folder(t) {
  const dir = mkdtempSync(join(tmpdir(), "hub-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

const openStore = (dir, room = ROOM) => Store.open(dir, room, (error) => { throw error; });
const numbers = (store) => store.read(1, 1000, 1 << 20).map((event) => event.seq);
const lost = (dir) => rmSync(join(dir, "lock"), { force: true }); // what a killed process leaves can be opened

test("a restart keeps the log, its numbers, events and values", async (t) => {
  const dir = folder(t), store = await openStore(dir);
  await store.change({ color: "red" }, [{ type: "a" }, { type: "b" }]);
  await store.acked(1);
  await store.close();
  const again = await openStore(dir);
  t.after(() => again.close());
  assert.deepEqual([again.log, again.newest, again.get("color")], [store.log, 2, "red"]);
  assert.deepEqual(numbers(again), [2]);
});

test("an end that a power cut has torn is left out, and its number was never readable", async (t) => {
  const dir = folder(t), store = await openStore(dir);
  await store.change({}, [{ type: "a" }]);
  const whole = readFileSync(join(dir, "journal")).length;
  const pending = store.change({}, [{ type: "b" }]);
  assert.deepEqual(numbers(store), [1], "an event is readable only when it is on disk");
  await pending;
  assert.deepEqual(numbers(store), [1, 2]);
  await store.close();
  truncateSync(join(dir, "journal"), whole + 20);
  const again = await openStore(dir);
  t.after(() => again.close());
  assert.deepEqual([again.log, again.newest], [store.log, 1]);
});

test("a hole in the middle begins a new log and keeps the values that can be read", async (t) => {
  const dir = folder(t), store = await openStore(dir);
  await store.change({ a: 1 }, [{ type: "a" }]);
  await store.change({ b: 2 }, [{ type: "b" }]);
  await store.change({ c: 3 });
  await store.close();
  const lines = readFileSync(join(dir, "journal"), "utf8").split("\n");
  lines[2] = lines[2].replace('"b"', '"x"');
  writeFileSync(join(dir, "journal"), lines.join("\n"));
  const again = await openStore(dir);
  t.after(() => again.close());
  assert.notEqual(again.log, store.log);
  assert.deepEqual([again.newest, again.get("a"), again.get("b"), again.get("c")], [0, 1, undefined, 3]);
});

test("a full queue drops its oldest events, and an ack beyond the newest raises the numbers", async (t) => {
  const dir = folder(t), store = await openStore(dir, { events: 3, bytes: 1 << 20 });
  t.after(() => store.close());
  for (let n = 0; n < 5; n++) await store.change({}, [{ type: "a" }]);
  assert.deepEqual([store.oldest, numbers(store)], [3, [3, 4, 5]]);
  await store.acked(9);
  await store.change({}, [{ type: "a" }]);
  assert.deepEqual(numbers(store), [10]);
});

test("a disk that fails is tried again, and nothing is readable meanwhile", async (t) => {
  const dir = folder(t), failures = [];
  const store = await Store.open(dir, ROOM, (error) => failures.push(error));
  t.after(() => store.close());
  store.file.appendFile = () => Promise.reject(new Error("no space left"));
  const change = store.change({}, [{ type: "a" }]);
  while (failures.length === 0) await new Promise(setImmediate);
  assert.deepEqual(numbers(store), []);
  await change;
  assert.deepEqual(numbers(store), [1]);
});

test("two processes cannot use one folder, and a killed one leaves it free", async (t) => {
  const dir = folder(t), store = await openStore(dir);
  await assert.rejects(openStore(dir), /another process uses this folder/);
  await store.close();
  appendFileSync(join(dir, "journal"), "torn");
  lost(dir);
  await (await openStore(dir)).close();
});

test("a certificate request is one that OpenSSL verifies", (t) => {
  let verified;
  try {
    verified = execFileSync("openssl", ["req", "-verify", "-noout", "-subject"], {
      input: certificateRequest(newKey()), stdio: ["pipe", "pipe", "pipe"], encoding: "utf8",
    });
  } catch (error) {
    if (error.code === "ENOENT") return t.skip("openssl is missing");
    throw error;
  }
  assert.match(verified, /CN ?= ?hub/);
});
