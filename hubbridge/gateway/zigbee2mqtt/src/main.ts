#!/usr/bin/env node
import { parseArgs } from "node:util";
import { Bridge } from "./bridge.js";

const USAGE = `Usage: hubcloud-zigbee2mqtt --enroll URL --serial SERIAL --secret=SECRET --dir DIR --broker URL

Connects the devices of a Zigbee2MQTT to a Device Hub Cloud.

  --enroll URL        address of the service, such as http://127.0.0.1:8080
  --serial SERIAL     serial of the hub: hubcloud inventory generate prints one
  --secret=SECRET     enrolment secret of the hub; also $HUBCLOUD_SECRET
  --dir DIR           folder for certificate, devices and events
  --broker URL        broker of Zigbee2MQTT, such as mqtt://127.0.0.1:1883
  --base-topic TOPIC  base_topic of Zigbee2MQTT, by default zigbee2mqtt
  --username NAME     for the broker; the password is in $MQTT_PASSWORD
`;

const text = { type: "string" } as const;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      enroll: text, serial: text, secret: text, dir: text, broker: text, "base-topic": text, username: text, help: { type: "boolean" },
    },
  });
  const { enroll: url, serial, secret = process.env["HUBCLOUD_SECRET"], dir, broker, username, "base-topic": baseTopic } = values;
  if (values.help || !url || !serial || !secret || !dir || !broker) {
    (values.help ? process.stdout : process.stderr).write(USAGE);
    process.exitCode = values.help ? 0 : 2;
    return;
  }
  const password = process.env["MQTT_PASSWORD"];
  const bridge = await Bridge.open({
    url, serial, secret, dir, broker, firmware: "1.0.0", log: (line) => console.error(`${new Date().toISOString()} ${line}`),
    ...baseTopic !== undefined && { baseTopic }, ...username !== undefined && { username }, ...password !== undefined && { password },
  });
  const stop = (): void => void bridge.close().then(() => process.exit(0));
  process.once("SIGINT", stop).once("SIGTERM", stop);
  await bridge.run();
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exit(1);
});
