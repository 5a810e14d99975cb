import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { certificateRequest } from "../dist/csr.js";
import { Store } from "../dist/store.js";

const ROOM = 1000;

/** Returns a folder that goes with the test. */
function folder(t) {
  const dir = mkdtempSync(join(tmpdir(), "hub-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

const openStore = (dir, room = ROOM) => Store.open(dir, room);
const numbers = (store) => store.read(1, 1000, 1 << 20).map((event) => event.seq);

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
  const dir = folder(t), store = await openStore(dir, 3);
  t.after(() => store.close());
  for (let n = 0; n < 5; n++) await store.change({}, [{ type: "a" }]);
  assert.deepEqual([store.oldest, numbers(store)], [3, [3, 4, 5]]);
  await store.acked(9);
  await store.change({}, [{ type: "a" }]);
  assert.deepEqual(numbers(store), [10]);
});

test("a disk that fails ends the process, and nothing that is not on disk is readable", () => {
  const script = `
    const { Store } = await import(${JSON.stringify(new URL("../dist/store.js", import.meta.url).href)});
    const store = await Store.open(process.argv[1], 10);
    store.file.datasync = () => Promise.reject(new Error("no space left"));
    process.once("exit", () => console.log(store.newest, store.read(1, 10, 1000).length));
    await store.change({}, [{ type: "a" }]);
    console.log("not reached");`;
  const dir = mkdtempSync(join(tmpdir(), "hub-"));
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", script, dir], { encoding: "utf8" });
  rmSync(dir, { recursive: true, force: true });
  assert.deepEqual([stdout, status], ["1 0\n", 1]);
  assert.match(stderr, /no space left/);
});

test("two processes cannot use one folder", { skip: process.platform !== "linux" }, async (t) => {
  const dir = folder(t), store = await openStore(dir);
  await assert.rejects(openStore(dir), /another process uses this folder/);
  await store.close();
  await (await openStore(dir)).close();
});

test("a journal that has grown is written again whole", async (t) => {
  const dir = folder(t), store = await openStore(dir), text = "x".repeat(15_000);
  for (let n = 0; n < 300; n++) void store.change({ n }, [{ type: "a", text }]);
  await store.acked(299);
  await store.change({ last: true });
  assert.ok(statSync(join(dir, "journal")).size < 4 << 20);
  await store.close();
  const again = await openStore(dir);
  t.after(() => again.close());
  assert.deepEqual([again.newest, numbers(again), again.get("n"), again.get("last")], [300, [300], 299, true]);
});

test("a certificate request is one that OpenSSL verifies", async () => {
  const { key, csr } = await certificateRequest();
  const verified = execFileSync("openssl", ["req", "-verify", "-noout", "-subject"], { input: csr, stdio: "pipe", encoding: "utf8" });
  assert.match(verified, /CN ?= ?hub/);
  assert.match(key, /^-----BEGIN PRIVATE KEY-----/);
});
