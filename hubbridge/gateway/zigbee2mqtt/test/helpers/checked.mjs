// The bridge with a broker and a stand-in for Zigbee2MQTT in one process, for `hubcloud hub check`.
import aedes from "aedes";
import { createServer } from "node:net";
import { standIn } from "./standin.mjs";

const server = createServer(aedes().handle);
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const broker = `mqtt://127.0.0.1:${server.address().port}`;
await standIn(broker);
process.argv.push("--broker", broker);
await import("../../dist/zigbee2mqtt/src/main.js");
