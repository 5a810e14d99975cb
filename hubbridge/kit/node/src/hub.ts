import { networkInterfaces } from "node:os";
import { isDeepStrictEqual } from "node:util";
import { Link } from "./link.js";
import { Store } from "./store.js";
import {
  HubError, type Channel, type ChannelSpec, type Command, type Device, type DeviceSpec, type HubOptions,
  type Network, type Radio, type Value,
} from "./types.js";
import { fulfils, takes } from "./values.js";

const SETUP_CODE = /^(\d{5}|\d{5}([- ]?\d{5}){7}|90\d{50,200}|MT:[0-9A-Z.-]{10,200})$/;
const DAY = 86_400_000, WINDOW = 120; // ms, seconds
const FORGET_COMMANDS = 10_000; // the newest are kept

type Answer = { result: object } | { error: { type: string; message: string } };
type Params = Record<string, unknown>;
interface Remembered { at: number | null; answer: Answer } // at: null while the clock is not trusted

/** Returns the time as the protocol writes it. */
const timestamp = (at = new Date()): string => at.toISOString().replace("Z", "000Z");

/**
 * Hub connects devices to the cloud. It keeps their states, the events that the cloud has not
 * stored yet and the answers to commands on disk, and outlives power cuts with them.
 *
 * Methods that change a device change it at once and return a promise, which resolves when the
 * change and its event are on disk. Events are sent in the order of the calls.
 */
export class Hub {
  private readonly devicesById = new Map<number, Device>();
  private readonly link: Link;
  private readonly running = new Map<string, Promise<Answer>>();
  private readonly latest = new Map<Channel, object>(); // the command that a pending channel waits for
  private window: { kind: "pairing" | "removal"; timer: NodeJS.Timeout } | undefined;

  private constructor(
    private readonly options: HubOptions, private readonly radio: Radio, private readonly store: Store,
  ) {
    for (const [, value] of store.entries("device/")) {
      const device = value as Device;
      this.devicesById.set(device.id, device);
    }
    this.link = new Link(store, {
      url: options.url, serial: options.serial, secret: options.secret,
      hello: () => ({ firmware: { version: options.firmware }, network: (options.network ?? network)() }),
      clockTrusted: () => this.clockTrusted, answer: (method, params) => this.answer(method, params),
      log: (line) => this.log(line),
    });
  }

  /** Opens the folder of a hub. Only one process may have it open. */
  static async open(options: HubOptions, radio: Radio): Promise<Hub> {
    const capacity = options.capacity ?? { events: 10_000, bytes: 32 << 20 };
    const report = options.log ?? stderr;
    const store = await Store.open(options.dir, capacity, (error) => report(`disk: ${String(error)}`));
    const hub = new Hub(options, radio, store);
    for (const device of hub.devices) { // what a restart has interrupted: it is not known whether it was done
      for (const channel of device.channels) {
        if (channel.status === "pending") await hub.abandon(device, channel);
      }
    }
    return hub;
  }

  /** Stays connected until close. Rejects if the cloud does not know the serial and secret. */
  run(): Promise<void> {
    return this.link.run();
  }

  /** Disconnects, writes what is to be written and lets go of the folder. */
  async close(): Promise<void> {
    clearTimeout(this.window?.timer);
    await this.link.stop();
    await this.store.close();
  }

  get connected(): boolean {
    return this.link.connected;
  }

  get devices(): Device[] {
    return [...this.devicesById.values()];
  }

  /** Returns the device that the radio calls ref. */
  find(ref: string): Device | undefined {
    return this.devices.find((device) => device.ref === ref);
  }

  /**
   * Adds a device, or updates the one that has ref already. `device.added` or, if its name or
   * channels changed, `device.updated` follows. A new device closes the pairing window.
   */
  async put(ref: string, spec: DeviceSpec): Promise<Device> {
    const known = this.find(ref), id = known?.id ?? Number(this.store.get("last_device") ?? 0) + 1;
    const channels = spec.channels.map((each) => this.channel(each, known));
    const has = (list: Channel[], { key, endpoint }: Channel) => list.some((c) => c.key === key && c.endpoint === endpoint);
    const removed = (known?.channels ?? []).filter((channel) => !has(channels, channel));
    const changed = !known || known.name !== spec.name || removed.length > 0 ||
      channels.some((channel) => !has(known.channels, channel));
    const described = {
      name: spec.name, manufacturer: spec.manufacturer ?? "", model: spec.model ?? "",
      secure: spec.secure ?? null, channels,
    };
    if (known && isDeepStrictEqual({ ...known, ...described }, known)) return known;
    const device: Device = Object.assign(known ?? { id, ref, available: true, wakes_at: null }, described);
    this.devicesById.set(id, device);
    const data = { name: device.name, removed_channels: removed.map(({ key, endpoint }) => ({ key, endpoint })) };
    const secure = device.secure === null ? {} : { secure: device.secure };
    const event = known ? this.event("device.updated", id, data)
      : this.event("device.added", id, { name: device.name, ...secure });
    const saved = this.save(device, changed ? [event] : [], known ? {} : { last_device: id });
    if (!known && this.window?.kind === "pairing") await this.closeWindow("joined");
    await saved;
    return device;
  }

  private channel(spec: ChannelSpec, device: Device | undefined): Channel {
    const endpoint = spec.endpoint ?? 0;
    const known = device?.channels.find((each) => each.key === spec.key && each.endpoint === endpoint);
    const described = {
      key: spec.key, endpoint, kind: spec.key, unit: spec.unit ?? null, available: device?.available ?? true,
      readable: spec.readable ?? true, writable: spec.writable ?? false, capabilities: spec.capabilities ?? {},
    };
    if (known) return Object.assign(known, described);
    return { ...described, value: null, observed_at: null, desired: null, desired_at: null, status: "unknown" };
  }

  /** Takes what a device reports. An unknown channel is passed over. */
  async observe(device: Device, key: string, endpoint: number, value: Value): Promise<void> {
    const channel = device.channels.find((each) => each.key === key && each.endpoint === endpoint);
    if (!channel || this.devicesById.get(device.id) !== device) return;
    const told = !isDeepStrictEqual(channel.value, value) || channel.status === "pending" ||
      key === "alarm" || key === "scene"; // R-type-1
    channel.value = value;
    channel.observed_at = timestamp();
    if (channel.desired === null || fulfils(channel, value, channel.desired)) channel.status = "synchronized";
    else if (channel.status !== "failed") channel.status = "diverged";
    if (channel.status !== "failed") this.latest.delete(channel);
    if (told) await this.save(device, [this.event("channel.observed", device.id, { key, endpoint, value })]);
  }

  /** Tells whether the radio reaches a device. */
  async setAvailable(device: Device, available: boolean): Promise<void> {
    if (device.available === available || this.devicesById.get(device.id) !== device) return;
    device.available = available;
    for (const channel of device.channels) channel.available = available;
    await this.save(device, [this.event(available ? "device.available" : "device.unavailable", device.id, {})]);
  }

  /** Tells when a device that sleeps is expected to wake; null if it does not sleep. */
  async setWakesAt(device: Device, at: Date | null): Promise<void> {
    device.wakes_at = at && timestamp(at);
    if (this.devicesById.get(device.id) === device) await this.save(device, []);
  }

  /** Removes a device: it has left the network. Closes the removal window. */
  async remove(device: Device): Promise<void> {
    if (!this.devicesById.delete(device.id)) return;
    const saved = this.change({ [`device/${device.id}`]: null }, [
      this.event("device.forgotten", device.id, { name: device.name }),
    ]);
    if (this.window?.kind === "removal") await this.closeWindow("joined");
    await saved;
  }

  /** Sends any other event, such as `device.join_failed` or `credential.created`. */
  async emit(type: string, device: Device | null, data: { [member: string]: Value }): Promise<void> {
    await this.change({}, [this.event(type, device?.id ?? null, data)]);
  }

  /** Keeps a value of the radio's own over restarts; null deletes it. */
  async keep(key: string, value: Value): Promise<void> {
    await this.store.change({ [`radio/${key}`]: value });
  }

  /** Returns a value that keep has kept. */
  kept(key: string): Value | undefined {
    return this.store.get(`radio/${key}`) as Value | undefined;
  }

  private get clockTrusted(): boolean {
    return this.options.clockTrusted?.() ?? Date.now() > Date.parse("2026-01-01");
  }

  private log(line: string): void {
    (this.options.log ?? stderr)(line);
  }

  private event(type: string, device_id: number | null, data: object): object {
    return { type, device_id, time: timestamp(), clock_trusted: this.clockTrusted, data };
  }

  private save(device: Device, events: object[], more: Record<string, unknown> = {}): Promise<void> {
    return this.change({ ...more, [`device/${device.id}`]: device }, events);
  }

  private async change(values: Record<string, unknown>, events: object[]): Promise<void> {
    await this.store.change(values, events);
    this.link.work();
  }

  /** Answers a request of the cloud. */
  private async answer(method: string, params: Params): Promise<Answer> {
    try {
      if (method === "channels.command") return await this.command(params);
      return { result: await this.call(method, params) };
    } catch (error) {
      return { error: this.fault(error) };
    }
  }

  private fault(error: unknown): { type: string; message: string } {
    if (error instanceof HubError) return { type: error.type, message: error.message };
    this.log(`request failed: ${error instanceof Error ? error.stack : String(error)}`);
    return { type: "hub_error", message: error instanceof Error ? error.message : "the hub failed" };
  }

  private async call(method: string, params: Params): Promise<object> {
    const last_event = this.store.newest;
    switch (method) {
      case "devices.list":
        return { devices: this.devices.map((device) => describe(device, false)), last_event };
      case "devices.get":
        return { device: describe(this.device(params), true), last_event };
      case "devices.forget": {
        const device = this.device(params);
        if (device.available) throw new HubError("invalid_request", `${device.name} is still on the hub's network`);
        this.requireRadio();
        await this.radio.forget?.(device);
        await this.remove(device);
        return {};
      }
      case "pairing.open": {
        const code = params["setup_code"] ?? undefined;
        const text = typeof code === "string" ? code.trim() : undefined;
        if (code !== undefined && !SETUP_CODE.test(text ?? "")) {
          throw new HubError("invalid_request", "setup_code cannot be read"); // R-pairing-2
        }
        return this.openWindow("pairing", () => this.radio.openPairing?.(text));
      }
      case "removal.open":
        return this.openWindow("removal", () => this.radio.openRemoval?.());
      case "pairing.close": case "removal.close":
        this.requireRadio();
        if (this.window?.kind === method.split(".")[0]) await this.closeWindow("asked");
        else if (method === "pairing.close") await this.radio.closePairing?.("asked"); // R-join-4
        return {};
      default:
        throw new HubError("unknown_method" as "hub_error", `no method ${method}`); // R-request-6
    }
  }

  private device(params: Params): Device {
    const device = this.devicesById.get(params["device_id"] as number);
    if (!device) throw new HubError("not_found", `no device ${String(params["device_id"])}`);
    return device;
  }

  private requireRadio(): void { // R-error-2
    if (this.radio.ready?.() === false) throw new HubError("hub_unavailable", "the radio is down");
    if (!this.clockTrusted) throw new HubError("hub_unavailable", "the hub does not know the time yet");
  }

  private async openWindow(kind: "pairing" | "removal", open: () => Promise<void> | undefined): Promise<object> {
    this.requireRadio();
    if (this.window) await this.closeWindow("asked");
    await open();
    const timer = setTimeout(() => void this.closeWindow("timeout").catch((error) => this.fault(error)), WINDOW * 1000);
    this.window = { kind, timer: timer.unref() };
    return { status: "open", expires_in: WINDOW };
  }

  private async closeWindow(reason: "asked" | "timeout" | "joined"): Promise<void> {
    const kind = this.window?.kind;
    clearTimeout(this.window?.timer);
    this.window = undefined;
    if (kind === "pairing") await this.radio.closePairing?.(reason);
    if (kind === "removal") await this.radio.closeRemoval?.();
  }

  /** Runs a command once: R-command-4, R-command-5. */
  private async command(params: Params): Promise<Answer> {
    const id = params["command_id"];
    if (typeof id !== "string" || id.length < 1 || id.length > 255) {
      throw new HubError("invalid_request", "command_id must have 1 to 255 characters");
    }
    const key = `command/${id}`, remembered = this.store.get(key) as Remembered | undefined;
    if (remembered) return remembered.answer;
    let answer = this.running.get(id);
    if (!answer) {
      answer = this.start(key, params).catch(async (error: unknown) => {
        const failed: Answer = { error: this.fault(error) };
        if (failed.error.type !== "hub_unavailable") await this.store.change(this.remember(key, failed)); // R-command-6
        return failed;
      }).finally(() => this.running.delete(id));
      this.running.set(id, answer);
    }
    return answer;
  }

  private async start(key: string, params: Params): Promise<Answer> {
    const value = params["value"] as Value, endpoint = params["endpoint"] ?? 0;
    const lookUp = (): Command => {
      const device = this.device(params);
      const channel = device.channels.find((each) => each.key === params["key"] && each.endpoint === endpoint);
      if (!channel) throw new HubError("not_found", `${device.name} has no such channel`);
      return { device, channel, value };
    };
    const wanted = lookUp();
    if (!wanted.channel.writable || !takes(wanted.channel, value)) {
      throw new HubError("invalid_request", `${wanted.channel.key} is read-only or does not take this value`);
    }
    if (wanted.device.secure === false) {
      throw new HubError("command_refused", `${wanted.device.name} did not join securely enough`); // R-join-2
    }
    this.requireRadio();
    await this.radio.check?.(wanted);
    const command = lookUp(), { device, channel } = command; // it may have left meanwhile
    Object.assign(channel, { desired: value, desired_at: timestamp(), status: "pending" });
    this.latest.set(channel, command);
    const answer: Answer = { result: { channel: pick(channel, COMMANDED) } };
    const data = { key: channel.key, endpoint: channel.endpoint, value };
    await this.save(device, [this.event("channel.desired", device.id, data)], this.remember(key, structuredClone(answer)));
    void this.drive(command);
    return answer;
  }

  private async drive(command: Command): Promise<void> {
    const { device, channel } = command;
    const giveUp = () => { // unless a later command or a report has come
      if (this.latest.get(channel) === command) void this.abandon(device, channel);
    };
    try {
      await this.radio.drive(command);
      setTimeout(giveUp, this.options.giveUpAfter ?? 30_000).unref();
    } catch (error) {
      this.log(`device ${device.id}, ${channel.key}: ${(error as Error).message}`);
      giveUp();
    }
  }

  private async abandon(device: Device, channel: Channel): Promise<void> {
    this.latest.delete(channel);
    if (channel.status !== "pending" || this.devicesById.get(device.id) !== device) return;
    channel.status = "failed";
    const { key, endpoint, status } = channel;
    await this.save(device, [this.event("channel.status", device.id, { key, endpoint, status })]);
  }

  /** Returns what remembers an answer, and forgets answers of more than a day ago. */
  private remember(key: string, answer: Answer): Record<string, unknown> {
    const now = Date.now(), changes: Record<string, unknown> = {}, known = this.store.entries("command/");
    for (const [at, [old, value]] of known.entries()) {
      const remembered = value as Remembered, age = now - (remembered.at ?? Infinity);
      if (known.length - at >= FORGET_COMMANDS || this.clockTrusted && age > DAY) changes[old] = null;
      else if (this.clockTrusted && age < 0) changes[old] = { ...remembered, at: now }; // stamped by a wrong clock
    }
    return { ...changes, [key]: { at: this.clockTrusted ? now : null, answer } };
  }
}

const BASIC = ["key", "endpoint", "kind", "unit", "available"] as const;
const LISTED = [...BASIC, "readable", "writable", "capabilities"] as const;
const STATE = ["value", "observed_at", "desired", "desired_at", "status"] as const;
const COMMANDED = [...BASIC, ...STATE] as const;

function pick(channel: Channel, members: readonly (keyof Channel)[]): object {
  return Object.fromEntries(members.map((member) => [member, channel[member]]));
}

function describe({ id, name, manufacturer, model, wakes_at, channels }: Device, values: boolean): object {
  const members = values ? [...LISTED, ...STATE] : LISTED;
  const sleeps = wakes_at === null ? {} : { wakes_at };
  return { id, name, manufacturer, model, ...sleeps, channels: channels.map((each) => pick(each, members)) };
}

function stderr(line: string): void {
  console.error(`${new Date().toISOString()} ${line}`);
}

/** Returns what the system says about its first interface. */
function network(): Network {
  const found = Object.entries(networkInterfaces()).map(([name, list]) => ({ name, list: list ?? [] }))
    .find(({ list }) => list.some((address) => !address.internal));
  const { name, list } = found ?? { name: "lo", list: [] };
  const address = (family: string) => list.find((each) => each.family === family)?.address ?? null;
  return {
    type: /^wl/.test(name) ? "wifi" : /^ww/.test(name) ? "cellular" : "ethernet", interface: name,
    ip_address: address("IPv4"), ipv6_address: address("IPv6"), mac_address: list[0]?.mac ?? null,
    ssid: null, signal_dbm: null, carrier: null, radio: null, metered: false,
  };
}
