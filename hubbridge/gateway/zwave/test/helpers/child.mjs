// A gateway on the mock network in a process of its own, which the test can kill: node child.mjs DIR. It does what its parent sends.
import { Gateway } from "../../dist/zwave/src/gateway.js";
import { MockNetwork } from "../../dist/zwave/src/mock.js";

const network = new MockNetwork((line) => {
  const [, pin] = /PIN (\d{5})/.exec(line) ?? [], [qr] = /90\d{50,}/.exec(line) ?? [];
  if (pin) process.send({ pin, qr });
});
const gateway = await Gateway.open({
  url: "http://127.0.0.1:9", serial: "", secret: "", dir: process.argv[2], firmware: "1", log: () => {}, clockTrusted: () => true, capacity: 100,
}, network.start);
await gateway.hub.openAgain(); // as run does, which this test cannot call: it has no cloud
const { store } = gateway.hub.hub;
gateway.driver.controller.on("node found", () => process.send({ joining: true }));
const calls = {
  devices: () => gateway.devices,
  events: () => store.read(1, 1000, 1 << 24).map(({ text }) => JSON.parse(text)),
  observe: async (on) => { // an acknowledgement says that the report is on disk
    const sensor = gateway.devices.find((device) => device.channels.some(({ key }) => key === "smoke"));
    await gateway.hub.observe(sensor, "smoke", 0, on);
    return store.newest;
  },
  list: () => gateway.driver.controller.getProvisioningEntries().map(({ dsk, nodeId }) => nodeId === undefined && dsk),
  tick: (at) => gateway.codes.tick(new Date(at)),
  lockHas: (slot) => ["userIdStatus", "userCode"].map((what) => network.node(20).state.get(`UserCode_${what}_${slot}`)),
  missed: (ms) => gateway.missed(Date.now() + ms),
  network: ([what, ...params]) => network[what](...params).catch((error) => error.message),
  ask: (request) => gateway.hub.hub.answer(...request),
};
process.on("message", async ({ id, call, params }) => {
  const result = await calls[call](params);
  await store.synced(); // as before an answer to the cloud
  process.send({ id, result });
});
process.send({ ready: true });
