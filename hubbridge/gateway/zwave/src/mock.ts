import {
  BatteryCCGet, BatteryCCReport, KeypadMode, NotificationCCGet, NotificationCCReport, Security2CC, ThermostatMode, ThermostatSetpointCCSet,
  ThermostatSetpointType, UserIDStatus,
} from "@zwave-js/cc";
import { CommandClasses, SecurityClass, type CommandClassInfo } from "@zwave-js/core";
import { MockController, MockNode, ccCaps, createMockZWaveRequestFrame, type MockNodeBehavior, type MockNodeOptions } from "@zwave-js/testing";
import { createAndStartDriverWithMockPort, createDefaultMockControllerBehaviors, createDefaultMockNodeBehaviors } from "zwave-js/Testing";
import type { StartDriver } from "./gateway.js";

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
      genericDeviceClass: 0x40, specificDeviceClass: 0x0b,
      commandClasses: [...IDENTITY, info(CC.Battery, 1), notification({ 6: [5, 6, 16] })],
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
        ccId: CC["User Code"], isSupported: true, version: 1, secure: true, numUsers: 10, supportedKeypadModes: [KeypadMode.Normal],
        supportedUserIDStatuses: [UserIDStatus.Available, UserIDStatus.Enabled],
      }),
      notification({ 6: [1, 2, 3, 4, 5, 6, 11, 13, 14] }, true),
      info(CC.Battery, 1, { secure: true }),
    ],
  },
};

/** What Z-Wave JS's mock nodes do not do by themselves, or not as devices do. */
const behaviour: MockNodeBehavior = {
  handleCC(controller, self, received) {
    const nodeId = controller.ownNodeId;
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
    return undefined;
  },
};

/** A Z-Wave network in this process, without any radio. It forgets the lock when it ends. */
export class MockNetwork {
  private controller: MockController | undefined;

  /** Called with the lock's PIN when it is known. */
  constructor(private readonly told: (line: string) => void) {}

  readonly start: StartDriver = async (options) => {
    const { driver, mockPort, serial, continueStartup } = await createAndStartDriverWithMockPort({
      ...options, timeouts: { ack: 2000, response: 20_000, report: 10_000, sendDataAbort: 20_000, sendDataCallback: 60_000 },
      testingHooks: { skipFirmwareIdentification: true },
    });
    const ready = new Promise<void>((done) => driver.once("driver ready", () => done()));
    const controller = await MockController.create({ mockPort, serial, homeId: 0x7e570001, ownNodeId: 1, securityKeys: options.securityKeys as Keys });
    controller.defineBehavior(...createDefaultMockControllerBehaviors());
    for (const options of NODES) {
      const node = await MockNode.create({ ...options, controller });
      node.defineBehavior(...createDefaultMockNodeBehaviors());
      node.defineBehavior(behaviour);
      controller.addNode(node);
    }
    this.controller = controller;
    await this.makeLock(controller);
    continueStartup();
    await ready;
    return driver;
  };

  /** Has a lock wait for a pairing window. */
  private async makeLock(controller: MockController): Promise<void> {
    const { ecdhKeyPair } = await MockNode.create({ ...lock, controller });
    controller.nodePendingInclusion = {
      ...lock,
      setup: (node) => {
        node.defineBehavior(behaviour);
        node.ecdhKeyPair = ecdhKeyPair; // so that its PIN is known before it joins
      },
    };
    const [high = 0, low = 0] = ecdhKeyPair.publicKey; // the PIN is the first two bytes, see the specification of S2
    this.told(`a lock waits to be paired: PIN ${String(high * 256 + low).padStart(5, "0")}`);
  }

  private node(id: number): MockNode {
    const node = this.controller?.nodes.get(id);
    if (!node) throw new Error(`node ${id} is not in the network`);
    return node;
  }

  private async notify(node: MockNode, type: number, event: number, parameters?: Uint8Array<ArrayBuffer>): Promise<void> {
    const report = new NotificationCCReport({
      nodeId: this.controller!.ownNodeId, notificationType: type, notificationEvent: event, notificationStatus: 0xff,
      ...parameters && { eventParameters: parameters },
    });
    const secure = node.securityManagers.securityManager2 !== undefined;
    const cc = secure ? Security2CC.encapsulate(report, node.id, node.securityManagers) : report;
    await node.sendToController(createMockZWaveRequestFrame(cc, { ackRequested: false }));
  }

  /** Somebody types the code of a slot at the lock. */
  async unlockByCode(slot: number): Promise<void> {
    const node = this.node(LOCK);
    node.state.set("DoorLock_currentMode", 0);
    await this.notify(node, 6, 6, Uint8Array.from([0x63, 0x03, slot]));
  }

  smoke(detected: boolean): Promise<void> {
    return this.notify(this.node(SMOKE), 1, detected ? 2 : 0);
  }

  /** Somebody locks at the keypad. */
  keypad(): Promise<void> {
    return this.notify(this.node(KEYPAD), 6, 5, Uint8Array.from([0x63, 0x03, 2]));
  }
}
