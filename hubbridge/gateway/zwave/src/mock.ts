import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import {
  BatteryCCGet, BatteryCCReport, CommandClass, KeypadMode, NotificationCCGet, NotificationCCReport, Security2CC, ThermostatMode,
  ThermostatSetpointCCSet, ThermostatSetpointType, UserIDStatus, WakeUpCCIntervalGet, WakeUpCCWakeUpNotification, WakeUpCommand,
} from "@zwave-js/cc";
import {
  CommandClasses, SecurityClass, generateECDHKeyPair, keyPairFromRawECDHPrivateKey, type CommandClassInfo,
} from "@zwave-js/core";
import { FunctionType } from "@zwave-js/serial";
import { MockController, MockNode, ccCaps, createMockZWaveRequestFrame, getDefaultMockControllerCapabilities, type MockNodeBehavior, type MockNodeOptions } from "@zwave-js/testing";
import { createAndStartDriverWithMockPort, createDefaultMockControllerBehaviors, createDefaultMockNodeBehaviors } from "zwave-js/Testing";
import { InterviewStage, NodeStatus, type Driver } from "zwave-js";
import type { StartDriver } from "./gateway.js";
import { MockRadio, printed } from "./mockradio.js";

const CC = CommandClasses;
type Keys = NonNullable<Parameters<typeof MockController.create>[0]["securityKeys"]>;
type Options = Omit<MockNodeOptions, "controller">;

const info = (cc: number, version: number, more: Partial<CommandClassInfo> = {}) => ({ ccId: cc, isSupported: true, version, ...more });
const IDENTITY = [info(CC.Version, 3), info(CC["Manufacturer Specific"], 2)];
const THERMOSTAT = 10, SWITCH = 11, SMOKE = 12, KEYPAD = 13, LOCK = 20;

const notification = (types: Record<number, number[]>, secure = false) => ccCaps({
  ccId: CC.Notification, isSupported: true, version: 8, secure, supportsV1Alarm: false, notificationTypesAndEvents: types,
});

/** The network: what is there from the beginning. */
const NODES: Options[] = [
  {
    id: THERMOSTAT,
    capabilities: {
      genericDeviceClass: 0x08, specificDeviceClass: 0x06,
      commandClasses: [
        ...IDENTITY,
        ccCaps({ ccId: CC["Thermostat Mode"], isSupported: true, version: 3, supportedModes: [ThermostatMode.Off, ThermostatMode.Heat, ThermostatMode.Cool] }),
        ccCaps({
          ccId: CC["Thermostat Setpoint"], isSupported: true, version: 3, setpoints: {
            [ThermostatSetpointType.Heating]: { minValue: 40, maxValue: 90, defaultValue: 68, scale: "°F" },
            [ThermostatSetpointType.Cooling]: { minValue: 60, maxValue: 100, defaultValue: 77, scale: "°F" },
          },
        }),
        ccCaps({
          ccId: CC["Multilevel Sensor"], isSupported: true, version: 5, sensors: { 1: { supportedScales: [1] } }, getValue: () => 69,
        }),
      ],
    },
  },
  {
    id: SWITCH,
    capabilities: {
      genericDeviceClass: 0x10, specificDeviceClass: 0x01,
      commandClasses: [...IDENTITY, info(CC["Multi Channel"], 4)],
      endpoints: [1, 2].map(() => ({
        genericDeviceClass: 0x10, specificDeviceClass: 0x01,
        commandClasses: [ccCaps({ ccId: CC["Binary Switch"], isSupported: true, version: 2, defaultValue: false })],
      })),
    },
  },
  {
    id: SMOKE,
    capabilities: {
      genericDeviceClass: 0x07, specificDeviceClass: 0x01,
      commandClasses: [...IDENTITY, info(CC.Battery, 1), notification({ 1: [2, 3, 6] })],
    },
  },
  {
    id: KEYPAD,
    capabilities: {
      genericDeviceClass: 0x40, specificDeviceClass: 0x0b, isListening: false, // it sleeps
      commandClasses: [...IDENTITY, info(CC.Battery, 1), info(CC["Wake Up"], 1), notification({ 6: [5, 6, 16] })],
    },
  },
];

/** The lock, which joins when a pairing window is opened with its PIN. */
const lock: Options = {
  id: LOCK,
  capabilities: {
    genericDeviceClass: 0x40, specificDeviceClass: 0x03, securityClasses: new Set([SecurityClass.S2_AccessControl]),
    commandClasses: [
      ...IDENTITY, info(CC["Security 2"], 1),
      ccCaps({ ccId: CC["Door Lock"], isSupported: true, version: 4, secure: true, supportedOperationTypes: [1], supportedDoorLockModes: [0, 255] }),
      ccCaps({
        ccId: CC["User Code"], isSupported: true, version: 2, secure: true, numUsers: 10, supportedKeypadModes: [KeypadMode.Normal],
        supportedUserIDStatuses: [UserIDStatus.Available, UserIDStatus.Enabled, UserIDStatus.Disabled],
      }),
      notification({ 6: [1, 2, 3, 4, 5, 6, 11, 13, 14] }, true),
      info(CC.Battery, 1, { secure: true }),
    ],
  },
};

const PATIENCE = 15_000; // ms
const INTERVAL = 3600; // seconds that the keypad sleeps

/** A Z-Wave network in this process, without any radio. It keeps in a file whether the lock has joined. */
export class MockNetwork {
  private controller!: MockController;
  private readonly radio = new MockRadio({ ...lock, setup: (node) => this.prepare(node) });
  private keyPair!: Awaited<ReturnType<typeof generateECDHKeyPair>>;

  /** Called with what a person needs to know. */
  constructor(private readonly told: (line: string) => void) {}

  readonly start: StartDriver = async (options) => {
    const { driver, mockPort, serial, continueStartup } = await createAndStartDriverWithMockPort({
      ...options, timeouts: { ack: 2000, response: 20_000, report: 10_000, sendDataAbort: 20_000, sendDataCallback: 60_000 },
      testingHooks: { skipFirmwareIdentification: true },
    });
    const ready = new Promise<void>((done) => driver.once("driver ready", () => done()));
    const { supportedFunctionTypes, ...capabilities } = getDefaultMockControllerCapabilities();
    const controller = await MockController.create({
      mockPort, serial, homeId: 0x7e570001, ownNodeId: 1, securityKeys: options.securityKeys as Keys,
      capabilities: { ...capabilities, supportedFunctionTypes: [...supportedFunctionTypes, FunctionType.RemoveFailedNode] },
    });
    this.makePatient(controller);
    controller.defineBehavior(...createDefaultMockControllerBehaviors());
    controller.defineBehavior(this.radio);
    this.controller = controller;
    for (const options of NODES) await this.addNode(options);
    await this.restoreLock(`${options.storage!.cacheDir}/mock`, driver);
    continueStartup();
    await ready;
    setInterval(() => { // as a person does who has put batteries in
      const keypad = driver.ready ? driver.controller.nodes.get(KEYPAD) : undefined;
      if (keypad?.status === NodeStatus.Asleep && keypad.interviewStage !== InterviewStage.Complete) void this.wake();
    }, 1000).unref();
    return driver;
  };

  /** On a busy machine an answer may take longer than Z-Wave JS's mock waits, which ends the process then. */
  private makePatient(controller: MockController): void {
    const { expectHostACK, expectNodeFrame, expectNodeCC, sendToNode } = MockController.prototype;
    const late = <T>(answer: Promise<T>): Promise<T> => { // it may fail before the mock looks at it
      answer.catch(() => {});
      return answer;
    };
    controller.expectHostACK = (_, message) => expectHostACK.call(controller, PATIENCE, message);
    controller.expectNodeFrame = ((node, predicate, options) => {
      const timeout = this.radio.unplugged.has(node.id) ? options?.timeout : PATIENCE;
      return late(expectNodeFrame.call(controller, node, predicate, { ...options, ...timeout !== undefined && { timeout } }));
    }) as MockController["expectNodeFrame"];
    controller.expectNodeCC = ((...call) => late(expectNodeCC.apply(controller, call))) as MockController["expectNodeCC"];
    controller.sendToNode = (...call) => late(sendToNode.apply(controller, call));
    const inner = controller as unknown as { serialOnData: (data: unknown) => Promise<void> }, { serialOnData } = inner;
    inner.serialOnData = (data) => serialOnData.call(controller, data)
      .catch((error: Error) => this.told(`the mock network does not answer: ${error.message}`)); // the driver tries again
  }

  private async addNode(options: Options): Promise<void> {
    const node = await MockNode.create({ ...options, controller: this.controller });
    node.defineBehavior(...createDefaultMockNodeBehaviors());
    this.prepare(node);
    this.controller.addNode(node);
  }

  private prepare(node: MockNode): void {
    node.defineBehavior(this.behaviour);
    const { expectControllerACK } = MockNode.prototype; // patient as the controller is
    node.expectControllerACK = (_, message) => expectControllerACK.call(node, PATIENCE, message);
    if (node.id === LOCK) node.ecdhKeyPair = this.keyPair; // so that its PIN is known before it joins
  }

  /** Puts the lock where it was when the process ended: in the network, with the keys that it had, or before the door. */
  private async restoreLock(file: string, driver: Driver): Promise<void> {
    const [key, ...joined] = existsSync(file) ? readFileSync(file, "utf8").split(" ") : [];
    this.keyPair = key ? await keyPairFromRawECDHPrivateKey(Buffer.from(key, "hex")) : await generateECDHKeyPair();
    const keep = (inside: boolean): void => {
      const granted = SecurityClass.S2_AccessControl, node = inside ? driver.controller.nodes.get(LOCK) : undefined;
      const words = [Buffer.from(this.keyPair.privateKey).toString("hex")];
      if (inside) words.push("joined", ...node?.hasSecurityClass(granted) ? [String(granted)] : []);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(`${file}.new`, words.join(" "));
      renameSync(`${file}.new`, file);
    };
    if (!key) keep(false);
    driver.once("driver ready", () => {
      driver.controller.on("node found", () => keep(true)).on("node added", () => keep(true)).on("node removed", ({ id }) => keep(id !== LOCK));
    });
    if (joined.length > 0) {
      const securityClasses = new Set(joined.slice(1).map(Number));
      await this.addNode({ ...lock, capabilities: { ...lock.capabilities, securityClasses } });
      return;
    }
    this.told(`a lock waits to be paired: PIN ${printed(this.keyPair.publicKey).slice(0, 5)}, or by SmartStart ${this.qr}`);
  }

  /** The text of the lock's QR code: version, checksum, requested keys, DSK, type and ID of the product. */
  private get qr(): string {
    const rest = `004${printed(this.keyPair.publicKey).replaceAll("-", "")}0010${"16387"}${"01537"}0220${"00001".repeat(4)}`;
    return `9001${String(createHash("sha1").update(rest).digest().readUInt16BE(0)).padStart(5, "0")}${rest}`;
  }

  /** What Z-Wave JS's mock nodes do not do by themselves, or not as devices do. */
  private readonly behaviour: MockNodeBehavior = {
    handleCC: (controller, self, received) => {
      const nodeId = controller.ownNodeId;
      if (this.radio.unplugged.has(self.id)) return { action: "stop" };
      if (received instanceof BatteryCCGet) {
        return { action: "sendCC", cc: new BatteryCCReport({ nodeId, level: 90 }) };
      }
      if (received instanceof NotificationCCGet) {
        return { action: "sendCC", cc: new NotificationCCReport({ nodeId, notificationType: received.notificationType!, notificationEvent: 0, notificationStatus: 0xff }) };
      }
      if (received instanceof ThermostatSetpointCCSet) { // the mock's own rejects all values above the minimum
        self.state.set(`ThermostatSetpoint_setpoint_${received.setpointType}`, received.value);
        self.state.set(`ThermostatSetpoint_scale_${received.setpointType}`, received.scale);
        return { action: "ok" };
      }
      if (received instanceof WakeUpCCIntervalGet) {
        const payload = Uint8Array.from([0, INTERVAL >> 8, INTERVAL & 0xff, nodeId]);
        return { action: "sendCC", cc: new CommandClass({ nodeId, ccId: CC["Wake Up"], ccCommand: WakeUpCommand.IntervalReport, payload }) };
      }
      return undefined;
    },
  };

  private node(id: number): MockNode {
    const node = this.controller.nodes.get(id);
    if (!node) throw new Error(`node ${id} is not in the network`);
    return node;
  }

  private async send(node: MockNode, report: CommandClass): Promise<void> {
    const secure = node.securityManagers.securityManager2 !== undefined;
    const cc = secure ? Security2CC.encapsulate(report, node.id, node.securityManagers) : report;
    await node.sendToController(createMockZWaveRequestFrame(cc, { ackRequested: false }));
  }

  private notify(node: MockNode, type: number, event: number, parameters?: Uint8Array<ArrayBuffer>): Promise<void> {
    return this.send(node, new NotificationCCReport({
      nodeId: this.controller.ownNodeId, notificationType: type, notificationEvent: event, notificationStatus: 0xff,
      ...parameters && { eventParameters: parameters },
    }));
  }

  /** Somebody types the code of a slot at the lock. */
  async unlockByCode(slot: number): Promise<void> {
    const node = this.node(LOCK);
    node.state.set("DoorLock_currentMode", 0);
    await this.notify(node, 6, 6, Uint8Array.from([0x63, 0x03, slot]));
  }

  /** Somebody sets a code at the lock, or removes it. */
  setOwnCode(slot: number, set: boolean): Promise<void> {
    return this.notify(this.node(LOCK), 6, set ? 14 : 13, Uint8Array.from([0x63, 0x03, slot]));
  }

  smoke(detected: boolean): Promise<void> {
    return this.notify(this.node(SMOKE), 1, detected ? 2 : 0);
  }

  /** Somebody locks at the keypad, which wakes up. */
  async keypad(): Promise<void> {
    await this.wake();
    await this.notify(this.node(KEYPAD), 6, 5, Uint8Array.from([0x63, 0x03, 2]));
  }

  /** The keypad wakes up, as it does every hour. */
  wake(): Promise<void> {
    return this.send(this.node(KEYPAD), new WakeUpCCWakeUpNotification({ nodeId: this.controller.ownNodeId }));
  }

  /** Somebody presses the button in the lock, which leaves in a removal window. */
  button(): Promise<void> {
    return this.radio.button(this.controller, LOCK);
  }

  /** The lock gets power: it joins if its QR code was given. */
  power(): Promise<void> {
    return this.radio.power(this.controller, this.keyPair.publicKey);
  }

  /** A device loses its power, or gets it back, and tells so. */
  async plug(id: number, plugged: boolean): Promise<void> {
    const node = this.node(id);
    node.autoAckControllerFrames = plugged;
    if (!plugged) this.radio.unplugged.add(id);
    else if (this.radio.unplugged.delete(id)) await this.send(node, new BatteryCCReport({ nodeId: this.controller.ownNodeId, level: 90 }));
  }
}
