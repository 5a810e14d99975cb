import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestNodeInfoRequest } from "@zwave-js/serial/serialapi";
import { refused, sceneOf } from "../dist/zwave/src/channels.js";
import { MockRadio } from "../dist/zwave/src/mockradio.js";

test("a scene is which button, and what was done", () => {
  assert.deepEqual(sceneOf({ commandClass: 0x5b, property: "scene", propertyKey: "002" }, 3), { scene: 2, attribute: "pressed_2" });
  assert.equal(sceneOf({ commandClass: 0x5b, property: "slowRefresh" }, 1), undefined);
});

test("a mock stick that is busy lets a request wait", async () => {
  const radio = new MockRadio({ id: 20 }), controller = { state: new Map([["communicationState", 2]]), nodes: new Map() };
  const begun = Date.now();
  setTimeout(() => controller.state.set("communicationState", 0), 50);
  assert.equal(await radio.onHostMessage(controller, new RequestNodeInfoRequest({ nodeId: 2 })), false);
  assert.ok(Date.now() - begun >= 45, "it has not waited");
});

test("a lock that tells no channels without its security has the one that is refused", () => {
  const node = (generic, specific) => ({ deviceClass: { generic: { key: generic }, specific: { key: specific } } });
  const keys = (...kind) => refused(node(...kind), []).map(({ spec }) => `${spec.key} ${spec.writable}`);
  assert.deepEqual(keys(0x40, 3), ["lock true"]);
  assert.deepEqual(keys(0x40, 7), ["barrier true"]);
  assert.deepEqual(keys(0x40, 0x0b), [], "a keypad");
  assert.deepEqual(keys(0x10, 1), [], "a switch");
  assert.deepEqual(refused(node(0x40, 3), [{ spec: { key: "lock" } }]), [], "a lock that tells it");
});
