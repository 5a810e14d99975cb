import assert from "node:assert/strict";
import { test } from "node:test";
import { sceneOf } from "../dist/zwave/src/channels.js";

test("a scene is which button, and what was done", () => {
  assert.deepEqual(sceneOf({ commandClass: 0x5b, property: "scene", propertyKey: "002" }, 3), { scene: 2, attribute: "pressed_2" });
  assert.equal(sceneOf({ commandClass: 0x5b, property: "slowRefresh" }, 1), undefined);
});
