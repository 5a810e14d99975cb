import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { HubError, type HubOptions } from "@hubcloud/hub";
import { CommandClasses, QRCodeVersion, SecurityClass, parseQRCodeString } from "@zwave-js/core";
import {
  Driver, ExclusionStrategy, InclusionStrategy, InterviewStage, NodeStatus, SecurityBootstrapFailure, SetValueStatus, UserIDStatus,
  type InclusionGrant, type InclusionUserCallbacks, type PartialZWaveOptions, type PlannedProvisioningEntry, type ValueID, type ZWaveNode,
} from "zwave-js";
import { DeviceHub, channelOf } from "../../devices/devicehub.js";
import type { ChannelSpec, Command, Device, Radio } from "../../devices/types.js";
import { Codes } from "./codes.js";
import { describes, guarded, mappings, refused, sameValue, sceneOf, type Mapping } from "./channels.js";

const CC = CommandClasses;
const ACCESS_CONTROL = 6, CODES_DELETED = 12, CODE_DELETED = 13, CODE_ADDED = 14; // Notification
const INTERVIEW = 30_000; // ms that a command waits for an interview
const TICK = 15_000; // ms
const LATE = 1.5; // wake-up intervals after which a device that sleeps counts as away

/** What waits for the interview of a node. */
interface Waiting {
  cached: boolean; // Z-Wave JS takes the interview from its cache, of which a kill may have lost a part
  reports: [ValueID, unknown][]; // of channels that are not known yet
  commands: (() => void)[];
}

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

/** Returns after how many ms a node wakes again, or 0 if it does not sleep. */
function wakeUpInterval(node: ZWaveNode): number {
  const seconds = node.canSleep ? Number(node.getValue({ commandClass: CC["Wake Up"], endpoint: 0, property: "wakeUpInterval" })) : 0;
  return seconds > 0 ? seconds * 1000 : 0;
}

/** Gateway is the radio of a hub: what Z-Wave JS knows becomes devices, and commands go to nodes. */
export class Gateway implements Radio {
  codes: Codes | undefined = undefined; // until the driver is ready
  private hub!: DeviceHub;
  private driver: Driver | undefined;
  private readonly maps = new Map<number, Mapping[]>(); // what is known of nodes
  private readonly waiting = new Map<number, Waiting>(); // nodes whose interview has not ended
  private pairing: { code: string | undefined; dsk: string | undefined; smartStart: boolean } | undefined;
  private readonly insecure = new Set<number>(); // nodes that have joined with less security than they should
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  private constructor(private readonly log: (line: string) => void) {}

  /** Opens the hub and starts the driver. The hub connects with run. */
  static async open(options: HubOptions & { log: (line: string) => void }, start: StartDriver, extra: PartialZWaveOptions = {}): Promise<Gateway> {
    const gateway = new Gateway(options.log);
    gateway.hub = await DeviceHub.open(options, gateway);
    const driver = await start({
      storage: { cacheDir: `${options.dir}/zwave`, throttle: "fast" }, securityKeys: await gateway.keys(),
      disableOptimisticValueUpdate: true, // a report is what a device has said
      logConfig: { enabled: false }, ...extra,
    });
    gateway.attach(driver);
    return gateway;
  }

  run(): Promise<void> {
    return this.hub.run();
  }

  /** Resolves when a window that a restart has interrupted is open again. */
  resumed(): Promise<void> {
    return this.hub.resumed();
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
    this.codes = new Codes(this.hub, driver, (device) => this.nodeOf(device));
    driver.on("error", (error) => this.log(`driver: ${error.message}`));
    const { controller } = driver;
    for (const device of this.hub.devices) { // left while the gateway was away
      if (!this.nodeOf(device)) this.later(this.forgotten(device));
    }
    for (const node of controller.nodes.values()) this.watch(node);
    this.later(this.resumeJoining());
    controller.on("node found", ({ id }) => this.later(this.hub.change({ joining: id })));
    controller.on("node added", (node, result) => {
      if (result.lowSecurity) this.log(`node ${node.id} has joined without security: ${SecurityBootstrapFailure[result.lowSecurityReason]}`);
      this.later(this.added(node, result.lowSecurity === true));
    });
    controller.on("node removed", (node) => this.later(this.removed(node)));
    controller.on("inclusion failed", () => { if (this.pairing) this.later(this.joinFailed("radio", true)); });
    this.timer = setInterval(() => {
      this.missed();
      this.later(this.codes!.tick());
    }, TICK);
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

  /** Tells of nodes that have joined while the gateway was away, and gives Z-Wave JS the SmartStart codes that it does not have. */
  private async resumeJoining(): Promise<void> {
    const { controller } = this.driver!, joining = this.hub.get("joining") as number | undefined;
    for (const node of this.hub.devices.length > 0 ? controller.nodes.values() : []) { // all are told when their interview ends, at first
      if (node.isControllerNode || this.deviceOf(node)) continue;
      const secure = (): boolean => (node.getHighestSecurityClass() ?? SecurityClass.None) !== SecurityClass.None;
      const added = (): void => this.later(this.added(node, node.supportsCC(CC["Security 2"]) && !secure()));
      if (node.deviceClass) added();
      else node.once("interview stage completed", added);
    }
    for (const entry of this.smartStart) {
      if (!controller.getProvisioningEntry(entry.dsk)) controller.provisionSmartStartNode(entry);
    }
    if (joining !== undefined && !controller.nodes.has(joining)) await this.joinFailed("radio", false);
  }

  private async added(node: ZWaveNode, lowSecurity: boolean): Promise<void> {
    if (lowSecurity) this.insecure.add(node.id);
    const known = this.deviceOf(node), dsk = this.driver!.controller.getProvisioningEntry(node.id)?.dsk;
    if (known) await this.forgotten(known); // the number of a node that was replaced
    this.watch(node);
    void this.hub.change({ joining: null, smart_start: this.smartStart.filter((entry) => entry.dsk !== dsk) as never });
    await this.describe(node, this.security(node).secure === false ? refused(node, []).map(({ spec }) => spec) : []);
  }

  private async removed(node: ZWaveNode): Promise<void> {
    node.removeAllListeners();
    this.maps.delete(node.id);
    this.insecure.delete(node.id);
    this.settle(node, []);
    const device = this.deviceOf(node);
    if (device) await this.forgotten(device);
    else if (this.hub.get("joining") === node.id) await this.joinFailed("security", false); // SmartStart puts such a node out again
  }

  private watch(node: ZWaveNode): void {
    if (node.isControllerNode || this.waiting.has(node.id)) return;
    const reach = (available: boolean) => () => {
      const device = this.deviceOf(node);
      if (device) this.later(this.hub.setAvailable(device, available));
    };
    const waiting: Waiting = { cached: node.interviewStage === InterviewStage.Complete, reports: [], commands: [] };
    this.waiting.set(node.id, waiting);
    node.on("interview started", () => { waiting.cached = false; });
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
    const is = guarded(node), needs = is?.secure || [CC["Door Lock"], CC["Barrier Operator"]].some((cc) => node.supportsCC(cc));
    const highest = node.getHighestSecurityClass();
    if (highest !== undefined && highest !== SecurityClass.None) return { secure: true };
    const insecure = this.insecure.has(node.id) || this.deviceOf(node)?.secure === false;
    return needs || insecure && is ? { secure: false } : {};
  }

  /** The channels of a node; of one that is refused also those that it does not tell without its security. A cache may have lost what is known to be secure. */
  private mappings(node: ZWaveNode): Mapping[] {
    const maps = mappings(node), lost = this.waiting.get(node.id)?.cached && this.deviceOf(node)?.secure === true;
    return !lost && this.security(node).secure === false ? [...maps, ...refused(node, maps)] : maps;
  }

  private async interviewed(node: ZWaveNode): Promise<void> {
    const known = this.deviceOf(node), print = [node.manufacturerId, node.productType, node.productId].map(String);
    const kept = known && this.hub.get(`print/${known.id}`), maps = this.mappings(node);
    const waiting = this.waiting.get(node.id), same = kept !== undefined && isDeepStrictEqual(kept, print);
    if (waiting?.cached && known && !(same && known.channels.every((channel) => maps.some(({ spec }) => describes(spec, channel))))) {
      this.maps.set(node.id, maps.filter(({ spec }) => known.channels.some((channel) => describes(spec, channel))));
      return node.refreshInfo();
    }
    if (known && kept && !same && !print.includes("undefined")) await this.forgotten(known); // replaced meanwhile
    const device = await this.describe(node, maps.map(({ spec }) => spec));
    const reports = this.settle(node, maps);
    if (!isDeepStrictEqual(this.hub.get(`print/${device.id}`), print)) await this.hub.change({ [`print/${device.id}`]: print });
    for (const [id, value] of reports) await this.report(node, id, value);
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

  /** Ends the wait for the interview of a node: its commands go on. Returns the reports that have waited. */
  private settle(node: ZWaveNode, maps: Mapping[]): Waiting["reports"] {
    const waiting = this.waiting.get(node.id);
    this.waiting.delete(node.id);
    if (maps.length > 0) this.maps.set(node.id, maps);
    for (const go of waiting?.commands ?? []) go();
    return waiting?.reports ?? [];
  }

  private async wakes(node: ZWaveNode): Promise<void> {
    const device = this.deviceOf(node), interval = wakeUpInterval(node);
    if (device && interval > 0) await this.hub.setWakesAt(device, new Date(Date.now() + interval));
  }

  /** A device that has missed its time to wake is away until it is heard. */
  private missed(now = Date.now()): void {
    for (const device of this.hub.devices) {
      const node = this.nodeOf(device), interval = node ? wakeUpInterval(node) : 0;
      if (!node?.lastSeen || interval === 0 || node.status === NodeStatus.Dead) continue;
      this.later(this.hub.setAvailable(device, now < node.lastSeen.getTime() + LATE * interval + 60_000));
    }
  }

  // Reports

  private async report(node: ZWaveNode, id: ValueID, value: unknown): Promise<void> {
    const device = this.deviceOf(node);
    if (!device) return;
    if (id.commandClass === CC["User Code"] && id.property === "userIdStatus") {
      await this.codes!.reported(device, Number(id.propertyKey), Number(value ?? 0) !== UserIDStatus.Available && value !== UserIDStatus.StatusNotAvailable);
    }
    if (id.commandClass === CC["User Code"] && id.property === "userCode" && value !== undefined) node.valueDB.removeValue(id); // it stays in the lock only
    const map = this.maps.get(node.id)?.find(({ from }) => sameValue(from, id));
    if (!map && device.channels.length > 0) this.waiting.get(node.id)?.reports.push([id, value]);
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
    if (args.event === CODES_DELETED) await this.codes!.reportedNone(device);
    if (user !== null && [CODE_DELETED, CODE_ADDED].includes(args.event)) await this.codes!.reported(device, user, args.event === CODE_ADDED);
  }

  // What the cloud asks for

  ready(): boolean {
    return this.driver?.ready === true;
  }

  private mapOf({ device, channel }: Command): Mapping | undefined {
    return this.maps.get(this.nodeOf(device)?.id ?? 0)?.find(({ spec }) => channelOf([spec], channel.key, channel.endpoint));
  }

  private target(command: Command): { node: ZWaveNode; to: ValueID; set: unknown } {
    const { device, channel, value } = command, node = this.nodeOf(device), map = this.mapOf(command);
    if (!node || !map?.to) throw new HubError("hub_unavailable", `${device.name} has not been interviewed yet`);
    const set = map.command?.(value);
    if (set === undefined) throw new HubError("invalid_request", `${channel.key} does not take this value`);
    return { node, to: map.to, set };
  }

  check(command: Command): void {
    const node = this.nodeOf(command.device);
    if (!node || !this.waiting.has(node.id)) this.target(command);
  }

  async drive(command: Command): Promise<void> {
    const interviewee = this.nodeOf(command.device), at = this.mapOf(command)?.to;
    const waiting = this.waiting.get(interviewee?.id ?? 0);
    const known = at && interviewee?.getEndpoint(at.endpoint ?? 0)?.supportsCC(at.commandClass); // a new interview forgets it at first
    if (waiting && !known) await new Promise<void>((go) => {
      waiting.commands.push(go);
      setTimeout(go, INTERVIEW).unref();
    });
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
    controller.unprovisionSmartStartNode(node.id); // or it would join again
    await controller.removeFailedNode(node.id);
  }

  async openPairing(code: string | undefined): Promise<void> {
    const dsk = code?.replace(/\D/g, "");
    this.pairing = { code, dsk: dsk?.length === 40 ? dsk : undefined, smartStart: false };
    if (code?.startsWith("MT:")) throw new HubError("invalid_request", "setup_code is of Matter, this hub has Z-Wave");
    if (!code?.startsWith("90")) return this.include();
    const qr = await parseQRCodeString(code).catch(() => {
      throw new HubError("invalid_request", "setup_code is no QR code of Z-Wave");
    });
    const entry = { dsk: qr.dsk, securityClasses: qr.securityClasses, requestedSecurityClasses: qr.securityClasses };
    if (qr.version === QRCodeVersion.SmartStart) { // joins by itself, also after the window
      this.driver!.controller.provisionSmartStartNode(entry);
      this.pairing.smartStart = true;
      await this.hub.change({ smart_start: [...this.smartStart.filter(({ dsk }) => dsk !== entry.dsk), entry] as never });
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

  /** The SmartStart codes whose devices have not joined yet: Z-Wave JS's own list may be lost by a kill. */
  private get smartStart(): PlannedProvisioningEntry[] {
    return (this.hub.get("smart_start") ?? []) as unknown as PlannedProvisioningEntry[];
  }

  /** Tells that a device failed to join; the window stays open. */
  private async joinFailed(reason: string, again: boolean): Promise<void> {
    await this.hub.change({ joining: null }, [{ type: "device.join_failed", device_id: null, data: { reason } }]);
    if (again && this.pairing && !this.pairing.smartStart) await this.include();
  }

  async closePairing(reason: "asked" | "timeout" | "joined"): Promise<void> {
    this.pairing = undefined;
    const { controller } = this.driver!, list = this.smartStart;
    if (reason !== "joined") await controller.stopInclusion();
    if (reason !== "asked" || list.length === 0) return;
    for (const { dsk } of list) controller.unprovisionSmartStartNode(dsk); // R-join-4
    await this.hub.change({ smart_start: null });
  }

  async openRemoval(): Promise<void> {
    if (!await this.driver!.controller.beginExclusion({ strategy: ExclusionStrategy.DisableProvisioningEntry })) {
      throw new HubError("hub_unavailable", "the radio is busy");
    }
  }

  async closeRemoval(reason: "asked" | "timeout" | "joined"): Promise<void> {
    if (reason !== "joined") await this.driver!.controller.stopExclusion();
  }
}
