#!/usr/bin/env node
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { Gateway, serialDriver } from "./gateway.js";
import { MockNetwork } from "./mock.js";

const USAGE = `Usage: hubcloud-zwave --enroll URL --serial SERIAL --secret=SECRET --dir DIR (--port PORT | --mock)

Connects a Z-Wave network to a Device Hub Cloud.

  --enroll URL      address of the service, such as http://127.0.0.1:8080
  --serial SERIAL   serial of the hub: hubcloud inventory generate prints one
  --secret=SECRET   enrolment secret of the hub; also $HUBCLOUD_SECRET
  --dir DIR         folder for keys, devices and events; back it up
  --port PORT       the stick, such as /dev/serial/by-id/…, or tcp://HOST:PORT
  --mock            a network in software in place of a stick

Lines on standard input, with --mock:

  set SLOT | clear SLOT         somebody sets a code at the lock, or removes it
  unlock SLOT                   somebody types the code of a slot at the lock
  smoke on | smoke off          the smoke sensor
  keypad                        somebody locks at the keypad, which wakes up
  wake                          the keypad wakes up
  button                        somebody presses the lock's button: it leaves in a removal window
  power                         the lock gets power: it joins if its SmartStart code was given
  unplug NODE | plug NODE       a device loses its power, or gets it back: 10 to 13, or 20, the lock
`;

const text = { type: "string" } as const;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { enroll: text, serial: text, secret: text, dir: text, port: text, mock: { type: "boolean" }, help: { type: "boolean" } },
  });
  const { enroll: url, serial, secret = process.env["HUBCLOUD_SECRET"], dir, port, mock } = values;
  if (values.help || !url || !serial || !secret || !dir || !port === !mock) {
    (values.help ? process.stdout : process.stderr).write(USAGE);
    process.exitCode = values.help ? 0 : 2;
    return;
  }
  const log = (line: string): void => console.error(`${new Date().toISOString()} ${line}`);
  process.on("unhandledRejection", (error) => {
    log(`${mock ? "the mock network: " : ""}${error instanceof Error ? error.stack : String(error)}`);
    if (!mock) process.exit(1);
  });
  const network = mock ? new MockNetwork(log) : undefined;
  const gateway = await Gateway.open(
    { url, serial, secret, dir, firmware: "1.0.0", log }, network?.start ?? serialDriver(port!),
  );
  log("the radio is ready");
  const lines = createInterface({ input: process.stdin });
  let before = gateway.resumed(); // a button that is pressed needs its removal window
  lines.on("line", (line) => {
    before = before.then(() => type(network, line)).then(log, (error: Error) => log(error.message));
  });
  const stop = (): void => {
    lines.close();
    process.stdin.unref?.();
    void gateway.close().then(() => process.exit(0));
  };
  process.once("SIGINT", stop).once("SIGTERM", stop);
  await gateway.run();
}

/** Does what a line of standard input says. */
async function type(network: MockNetwork | undefined, line: string): Promise<string> {
  const [word, ...rest] = line.trim().split(/\s+/);
  if (network && (word === "set" || word === "clear")) {
    await network.setOwnCode(Number(rest[0]), word === "set");
  } else if (word === "unlock" && network) {
    await network.unlockByCode(Number(rest[0]));
  } else if (word === "smoke" && network) {
    await network.smoke(rest[0] === "on");
  } else if (network && (word === "keypad" || word === "wake" || word === "button" || word === "power")) {
    await network[word]();
  } else if (network && (word === "plug" || word === "unplug")) {
    await network.plug(Number(rest[0]), word === "plug");
  } else {
    return `not understood: ${line}`;
  }
  return "done";
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exit(1);
});
