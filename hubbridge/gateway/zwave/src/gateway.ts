import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { HubError, type HubOptions } from "@hubcloud/hub";
import { CommandClasses, QRCodeVersion, SecurityClass, parseQRCodeString } from "@zwave-js/core";
import {
  Driver, ExclusionStrategy, InclusionStrategy, InterviewStage, NodeStatus, SecurityBootstrapFailure, SetValueStatus, UserIDStatus,
  type InclusionGrant, type InclusionUserCallbacks, type PartialZWaveOptions, type ValueID, type ZWaveNode,
} from "zwave-js";
import { DeviceHub, channelOf } from "../../devices/devicehub.js";
import type { ChannelSpec, Command, Device, Radio } from "../../devices/types.js";
import { mappings, sameValue, sceneOf, type Mapping } from "./channels.js";

const CC = CommandClasses;
const ACCESS_CONTROL = 6, CODES_DELETED = 12, CODE_DELETED = 13, CODE_ADDED = 14; // Notification
const LATE = 1.5; // wake-up intervals after which a device that sleeps counts as away

/** Starts a driver with options, and resolves when it is ready. */
export type StartDriver = (options: PartialZWaveOptions) => Promise<Driver>;

/** Starts a driver on a serial port, such as /dev/ttyUSB0, or tcp://HOST:PORT. */
export function serialDriver(port: string): StartDriver {
  return async (options) => {
    const driver = new Driver(port, options);
    await new Promise<void>((ready, failed) => {
      driver.once("driver ready", () => ready());
      driver.once("error", failed);
      driver.start().catch(failed);
    });
    return driver;
  };
}

/** Gateway is the radio of a hub: what Z-Wave JS knows becomes devices, and commands go to nodes. */
export class Gateway implements Radio {
  private hub!: DeviceHub;
  private driver: Driver | undefined;
  private readonly maps = new Map<number, Mapping[]>(); // of nodes that are interviewed
  private pairing: { code: string | undefined; dsk: string | undefined; smartStart: string | undefined } | undefined;
  private readonly insecure = new Set<number>(); // nodes that have joined with less security than they should
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  private constructor(private readonly log: (line: string) => void) {}

  /** Opens the hub and starts the driver. The hub connects with run. */
  static async open(options: HubOptions & { log: (line: string) => void }, start: StartDriver, extra: PartialZWaveOptions = {}): Promise<Gateway> {
    const gateway = new Gateway(options.log);
    gateway.hub = await DeviceHub.open(options, gateway);
    const driver = await start({
      storage: { cacheDir: `${options.dir}/zwave` }, securityKeys: await gateway.keys(),
      disableOptimisticValueUpdate: true, // a report is what a device has said
      logConfig: { enabled: false }, ...extra,
    });
    gateway.attach(driver);
    return gateway;
  }

  run(): Promise<void> {
    return this.hub.run();
  }

  async close(): Promise<void> {
    this.closed = true;
    clearInterval(this.timer);
    await this.driver?.destroy();
    await this.hub.close();
  }

  get devices(): Device[] {
    return this.hub.devices;
  }

  /** The network's keys: made once. Who has lost them pairs every secure device again. */
  private async keys(): Promise<NonNullable<PartialZWaveOptions["securityKeys"]>> {
    let kept = this.hub.get("keys") as Record<string, string> | undefined;
    if (!kept) {
      const names = ["S2_AccessControl", "S2_Authenticated", "S2_Unauthenticated", "S0_Legacy"];
      kept = Object.fromEntries(names.map((name) => [name, randomBytes(16).toString("hex")]));
      await this.hub.change({ keys: kept });
    }
    return Object.fromEntries(Object.entries(kept).map(([name, key]) => [name, Buffer.from(key, "hex")]));
  }

  private attach(driver: Driver): void {
    this.driver = driver;
    driver.on("error", (error) => this.log(`driver: ${error.message}`));
    const { controller } = driver;
    for (const device of this.hub.devices) { // left while the gateway was away
      if (!this.nodeOf(device)) this.later(this.forgotten(device));
    }
    for (const node of controller.nodes.values()) this.watch(node);
    controller.on("node added", (node, result) => {
      if (result.lowSecurity) this.log(`node ${node.id} has joined without security: ${SecurityBootstrapFailure[result.lowSecurityReason]}`);
      this.later(this.added(node, result.lowSecurity === true));
    });
    controller.on("node removed", (node) => this.later(this.removed(node)));
    controller.on("inclusion failed", () => this.later(this.joinFailed("radio", true)));
    this.timer = setInterval(() => this.missed(), 60_000);
  }

  /** Lets work run on; a failure is told to people. */
  private later(work: Promise<unknown>): void {
    work.catch((error: Error) => { if (!this.closed) this.log(error.stack ?? error.message); });
  }

  private ref(nodeId: number): string {
    return `${this.driver?.controller.homeId?.toString(16)}-${nodeId}`;
  }

  private nodeOf(device: Device): ZWaveNode | undefined {
    const nodes = this.driver?.controller.nodes;
    return nodes && [...nodes.values()].find((node) => this.ref(node.id) === device.ref);
  }

  private deviceOf(node: ZWaveNode): Device | undefined {
    return this.hub.find(this.ref(node.id));
  }

  private forgotten(device: Device): Promise<void> {
    return this.hub.remove(device, { [`codes/${device.id}`]: null, [`print/${device.id}`]: null });
  }

  // Nodes that join, are interviewed, sleep and die

  private async added(node: ZWaveNode, lowSecurity: boolean): Promise<void> {
    if (lowSecurity) this.insecure.add(node.id);
    const known = this.deviceOf(node);
    if (known) await this.forgotten(known); // the number of a node that was replaced
    this.watch(node);
    await this.describe(node, []);
  }

  private async removed(node: ZWaveNode): Promise<void> {
    node.removeAllListeners();
    this.maps.delete(node.id);
    this.insecure.delete(node.id);
    const device = this.deviceOf(node);
    if (device) await this.forgotten(device);
  }

  private watch(node: ZWaveNode): void {
    if (node.isControllerNode) return;
    const reach = (available: boolean) => () => {
      const device = this.deviceOf(node);
      if (device) this.later(this.hub.setAvailable(device, available));
    };
    node.on("ready", () => this.later(this.interviewed(node)));
    node.on("interview completed", () => this.later(this.interviewed(node)));
    node.on("dead", reach(false)).on("alive", reach(true));
    node.on("wake up", () => { reach(true)(); this.later(this.wakes(node)); });
    node.on("sleep", () => this.later(this.wakes(node)));
    node.on("value added", (_, { newValue, ...id }) => this.later(this.report(node, id, newValue)));
    node.on("value updated", (_, { newValue, ...id }) => this.later(this.report(node, id, newValue)));
    node.on("value notification", (_, { value, ...id }) => this.later(this.scene(node, id, value)));
    node.on("notification", (_, ccId, args) => this.later(this.notification(node, ccId, args as never)));
    if (node.ready) this.later(this.interviewed(node));
  }

  private async describe(node: ZWaveNode, channels: ChannelSpec[]): Promise<Device> {
    const { manufacturer, label, description } = node.deviceConfig ?? {};
    return this.hub.put(this.ref(node.id), {
      name: node.name || description || label || `${node.deviceClass?.specific.label ?? "Node"} ${node.id}`,
      manufacturer: manufacturer ?? "", model: label ?? "",
      channels, ...this.security(node),
    });
  }

  /** A lock or barrier must have joined with S2 or S0. */
  private security(node: ZWaveNode): { secure?: boolean } {
    const needs = [CC["Door Lock"], CC["Barrier Operator"]].some((cc) => node.supportsCC(cc));
    const highest = node.getHighestSecurityClass();
    if (highest !== undefined && highest !== SecurityClass.None) return { secure: true };
    return needs || this.insecure.has(node.id) && node.deviceClass?.generic.key === 0x40 ? { secure: false } : {};
  }

  private async interviewed(node: ZWaveNode): Promise<void> {
    const known = this.deviceOf(node), print = [node.manufacturerId, node.productType, node.productId].map(String);
    const kept = known && this.hub.get(`print/${known.id}`);
    if (known && kept && !isDeepStrictEqual(kept, print)) await this.forgotten(known); // replaced meanwhile
    const maps = mappings(node), specs = maps.map((map) => map.spec);
    // A gateway that was killed may interview a node again: until that ends, nothing is known to have gone.
    const missing = node.interviewStage === InterviewStage.Complete ? []
      : this.deviceOf(node)?.channels.filter((each) => !channelOf(specs, each.key, each.endpoint)) ?? [];
    const device = await this.describe(node, [...specs, ...missing]);
    this.maps.set(node.id, maps);
    if (!isDeepStrictEqual(this.hub.get(`print/${device.id}`), print)) await this.hub.change({ [`print/${device.id}`]: print });
    for (const { spec, from, report } of maps) {
      const value = from.commandClass === 0 ? undefined : report(node.getValue(from));
      const now = channelOf(device.channels, spec.key, spec.endpoint ?? 0);
      if (value !== undefined && !isDeepStrictEqual(now?.value, value)) {
        await this.hub.observe(device, spec.key, spec.endpoint ?? 0, value);
      }
    }
    await this.hub.setAvailable(device, node.status !== NodeStatus.Dead);
    await this.wakes(node);
  }

  private async wakes(node: ZWaveNode): Promise<void> {
    const device = this.deviceOf(node);
    if (!device || !node.canSleep) return;
    const seconds = Number(node.getValue({ commandClass: CC["Wake Up"], endpoint: 0, property: "wakeUpInterval" }));
    if (seconds > 0) await this.hub.setWakesAt(device, new Date(Date.now() + seconds * 1000));
  }

  /** A device that has missed its time to wake is away. */
  private missed(): void {
    for (const device of this.hub.devices) {
      const node = device.wakes_at === undefined ? undefined : this.nodeOf(device);
      if (!node || node.status !== NodeStatus.Asleep || !node.lastSeen) continue;
      const due = Date.parse(device.wakes_at!), interval = due - node.lastSeen.getTime();
      if (Date.now() > due + (LATE - 1) * interval + 60_000) this.later(this.hub.setAvailable(device, false));
    }
  }

  // Reports

  private async report(node: ZWaveNode, id: ValueID, value: unknown): Promise<void> {
    const device = this.deviceOf(node);
    if (!device) return;
    if (id.commandClass === CC["User Code"] && id.property === "userIdStatus") {
      await this.code(device, Number(id.propertyKey), value === UserIDStatus.Enabled, undefined);
    }
    const map = this.maps.get(node.id)?.find(({ from }) => sameValue(from, id));
    const reported = map?.report(value);
    if (map && reported !== undefined) await this.hub.observe(device, map.spec.key, map.spec.endpoint ?? 0, reported);
  }

  private async scene(node: ZWaveNode, id: ValueID, value: unknown): Promise<void> {
    const device = this.deviceOf(node), scene = sceneOf(id, value);
    if (device && scene) await this.hub.observe(device, "scene", 0, scene);
  }

  private async notification(
    node: ZWaveNode, ccId: number,
    args: { type: number; label: string; event: number; eventLabel: string; eventTypeLabel?: string; parameters?: { userId?: number } },
  ): Promise<void> {
    const device = this.deviceOf(node);
    if (!device) return;
    if (ccId === CC["Entry Control"]) { // the code that was typed stays here
      await this.hub.observe(device, "alarm", 0, { type: "Keypad", event: args.eventTypeLabel ?? "", active: true, user: null });
    }
    if (ccId !== CC.Notification) return;
    const user = args.parameters?.userId ?? null;
    await this.hub.observe(device, "alarm", 0, {
      type: args.label, event: args.eventLabel, active: args.event !== 0, user,
    });
    if (args.type !== ACCESS_CONTROL) return;
    if (args.event === CODES_DELETED) for (const slot of Object.keys(this.codes(device))) await this.code(device, Number(slot), false, undefined);
    if (user !== null && [CODE_DELETED, CODE_ADDED].includes(args.event)) {
      await this.code(device, user, args.event === CODE_ADDED, undefined);
    }
  }

  // User codes: events only. The codes themselves never leave the gateway.

  private codes(device: Device): Record<string, string> {
    return (this.hub.get(`codes/${device.id}`) ?? {}) as Record<string, string>;
  }

  private async code(device: Device, slot: number, active: boolean, label: string | undefined): Promise<void> {
    const { [slot]: known, ...others } = this.codes(device);
    if (active === (known !== undefined) && (!active || label === undefined || label === known)) return;
    const name = label ?? known ?? `Code ${slot}`;
    const event = (type: string, data: object) => ({ type, device_id: device.id, data });
    await this.hub.change({ [`codes/${device.id}`]: active ? { ...others, [slot]: name } : others }, active
      ? [event("credential.created", { slot, label: name }), event("credential.applied", { slot, state: "active" })]
      : [event("credential.revoked", { slot })]);
  }

  /** Sets a code of a lock; without a code the slot becomes free. */
  async setCode(deviceId: number, slot: number, code: string | undefined, label: string): Promise<void> {
    const device = this.hub.devices.find((each) => each.id === deviceId), node = device && this.nodeOf(device);
    if (!device || !node) throw new Error(`no device ${deviceId}`);
    if (!node.supportsCC(CC["User Code"])) throw new Error(`${device.name} has no codes`);
    const api = node.commandClasses["User Code"];
    if (code === undefined) await api.clear(slot);
    else await api.set(slot, UserIDStatus.Enabled, code);
    await this.code(device, slot, code !== undefined, label);
  }

  // What the cloud asks for

  ready(): boolean {
    return this.driver?.ready === true;
  }

  private target({ device, channel, value }: Command): { node: ZWaveNode; to: ValueID; set: unknown } {
    const node = this.nodeOf(device);
    const map = node && this.maps.get(node.id)?.find(({ spec }) => channelOf([spec], channel.key, channel.endpoint));
    if (!node || !map?.to) throw new HubError("hub_unavailable", `${device.name} has not been interviewed yet`);
    const set = map.command?.(value);
    if (set === undefined) throw new HubError("invalid_request", `${channel.key} does not take this value`);
    return { node, to: map.to, set };
  }

  check(command: Command): void {
    this.target(command);
  }

  async drive(command: Command): Promise<void> {
    const { node, to, set } = this.target(command);
    const { status, message } = await node.setValue(to, set);
    if (![SetValueStatus.Success, SetValueStatus.SuccessUnsupervised, SetValueStatus.Working].includes(status)) {
      throw new Error(message ?? SetValueStatus[status]);
    }
    // What the device reports decides: it is asked where it may not report by itself.
    setTimeout(() => {
      const from = this.maps.get(node.id)?.find((map) => map.to && sameValue(map.to, to))?.from;
      if (from && command.channel.status === "pending") this.later(node.pollValue(from));
    }, 1000).unref();
  }

  async forget(device: Device): Promise<void> {
    const node = this.nodeOf(device), controller = this.driver!.controller;
    if (!node) return;
    if (!node.canSleep && await node.ping()) throw new HubError("invalid_request", `${device.name} is still on the hub's network`);
    await controller.removeFailedNode(node.id);
  }

  async openPairing(code: string | undefined): Promise<void> {
    const dsk = code?.replace(/\D/g, "");
    this.pairing = { code, dsk: dsk?.length === 40 ? dsk : undefined, smartStart: undefined };
    if (code?.startsWith("MT:")) throw new HubError("invalid_request", "setup_code is of Matter, this hub has Z-Wave");
    if (!code?.startsWith("90")) return this.include();
    const qr = await parseQRCodeString(code).catch(() => {
      throw new HubError("invalid_request", "setup_code is no QR code of Z-Wave");
    });
    const entry = { dsk: qr.dsk, securityClasses: qr.securityClasses, requestedSecurityClasses: qr.securityClasses };
    if (qr.version === QRCodeVersion.SmartStart) { // joins by itself, also after the window
      this.driver!.controller.provisionSmartStartNode(entry);
      this.pairing.smartStart = qr.dsk;
      await this.hub.change({ smart_start: qr.dsk });
    } else {
      await this.driver!.controller.beginInclusion({ strategy: InclusionStrategy.Security_S2, provisioning: entry });
    }
  }

  private async include(): Promise<void> {
    const begun = await this.driver!.controller.beginInclusion({ strategy: InclusionStrategy.Default, userCallbacks: this.callbacks() });
    if (!begun) throw new HubError("hub_unavailable", "the radio is busy");
  }

  /** Answers for the person who has given the code already. Without one nothing that needs a PIN is granted. */
  private callbacks(): InclusionUserCallbacks {
    const { code, dsk } = this.pairing!;
    const open = [SecurityClass.S2_Unauthenticated, SecurityClass.S0_Legacy];
    return {
      grantSecurityClasses: async ({ securityClasses }): Promise<InclusionGrant | false> => {
        const granted = code === undefined ? securityClasses.filter((each) => open.includes(each)) : securityClasses;
        return granted.length > 0 && { securityClasses: granted, clientSideAuth: false };
      },
      validateDSKAndEnterPIN: async (rest) => {
        const fits = dsk === undefined || dsk.slice(5) === rest.replace(/\D/g, "");
        if (!fits) this.later(this.joinFailed("setup_code", false));
        return fits && code ? code.slice(0, 5) : false;
      },
      abort: () => this.log("the device has given up joining"),
    };
  }

  /** Tells that a device failed to join; the window stays open. */
  private async joinFailed(reason: string, again: boolean): Promise<void> {
    if (!this.pairing) return;
    await this.hub.change({}, [{ type: "device.join_failed", device_id: null, data: { reason } }]);
    if (again && this.pairing && !this.pairing.smartStart) await this.include();
  }

  async closePairing(reason: "asked" | "timeout" | "joined"): Promise<void> {
    this.pairing = undefined;
    const controller = this.driver!.controller, dsk = this.hub.get("smart_start") as string | undefined;
    if (reason !== "joined") await controller.stopInclusion();
    if (dsk && reason !== "timeout") { // R-join-4
      if (reason === "asked") controller.unprovisionSmartStartNode(dsk);
      await this.hub.change({ smart_start: null });
    }
  }

  async openRemoval(): Promise<void> {
    if (!await this.driver!.controller.beginExclusion({ strategy: ExclusionStrategy.DisableProvisioningEntry })) {
      throw new HubError("hub_unavailable", "the radio is busy");
    }
  }

  async closeRemoval(): Promise<void> {
    await this.driver!.controller.stopExclusion();
  }
}
