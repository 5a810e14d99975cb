import { isDeepStrictEqual } from "node:util";
import { Hub, HubError, timestamp, type HubEvent, type HubOptions, type Params } from "@hubcloud/hub";
import type { Channel, ChannelSpec, Command, Device, DeviceSpec, Radio, Value } from "./types.js";
import { fulfils, takes } from "./values.js";

const WINDOW = 120; // seconds that a window is open
const GIVE_UP = 30_000; // ms that a device that has a command may take to report

type Kind = "pairing" | "removal";
type Reason = "asked" | "timeout" | "joined";
type Window = { kind: Kind; until: number; code?: string }; // until is in ms

/**
 * DeviceHub is a hub with devices: it keeps them over restarts, answers for them, and tells what
 * happens to them. Methods that change a device change it at once; their promises resolve when the
 * change and its event are on disk.
 */
export class DeviceHub {
  private readonly devicesById = new Map<number, Device>();
  private timer: NodeJS.Timeout | undefined; // of the window that is open
  private hub!: Hub;
  private resuming: Promise<void> | undefined;

  private constructor(private readonly radio: Radio, private readonly log: (line: string) => void) {}

  /** Opens the folder of a hub. A command that a restart has interrupted becomes failed. */
  static async open(options: HubOptions & { log: (line: string) => void }, radio: Radio): Promise<DeviceHub> {
    const self = new DeviceHub(radio, options.log);
    self.hub = await Hub.open(options, {
      "devices.list": () => ({ devices: self.devices.map(described) }),
      "devices.get": (params) => ({ device: described(self.device(params)) }),
      "devices.forget": (params) => self.forget(self.device(params)),
      "channels.command": (params) => self.command(params),
      "pairing.open": ({ setup_code: code }) => self.openWindow("pairing", typeof code === "string" ? code.trim() : undefined),
      "pairing.close": () => self.closeAsked("pairing"),
      "removal.open": () => self.openWindow("removal"),
      "removal.close": () => self.closeAsked("removal"),
      ..."codes" in radio && {
        "credentials.list": (params) => self.radio.codes!.list(self.lock(params)),
        "credentials.set": (params) => self.radio.codes!.set(self.lock(params), params),
        "credentials.remove": (params) => self.radio.codes!.remove(self.lock(params), params["slot"] as number),
      },
    });
    for (const [, device] of self.hub.entries("device/") as [string, Device][]) self.devicesById.set(device.id, device);
    for (const device of self.devices) for (const channel of device.channels) self.giveUp(device, channel);
    return self;
  }

  /** Stays connected until close. Rejects if the cloud does not know the serial and secret. */
  async run(): Promise<void> {
    await this.resumed();
    return this.hub.run();
  }

  async close(): Promise<void> {
    clearTimeout(this.timer);
    await this.hub.close();
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
    const known = this.find(ref), id = known?.id ?? Number(this.hub.get("last_device") ?? 0) + 1;
    const channels = spec.channels.map((each) => newChannel(each, known));
    const missing = (list: Channel[], of: Channel[] = []) => of.filter((each) => !channelOf(list, each.key, each.endpoint));
    const added = missing(known?.channels ?? [], channels), removed = missing(channels, known?.channels);
    const device: Device = { available: true, ...known, ...spec, id, ref, channels };
    if (known && isDeepStrictEqual(device, known)) return known;
    const { name, secure } = spec;
    const joined = { type: "device.added", device_id: id, data: secure === undefined ? { name } : { name, secure } };
    const updated = { type: "device.updated", device_id: id, data: { name, removed_channels: removed.map(({ key, endpoint }) => ({ key, endpoint })) } };
    const changed = known?.name !== name || added.length + removed.length > 0;
    device.channels = channels.map((each) => Object.assign(channelOf(known?.channels ?? [], each.key, each.endpoint) ?? each, each));
    const kept = known ? Object.assign(known, device) : device;
    if (secure === undefined) delete kept.secure;
    this.devicesById.set(id, kept);
    const saved = known ? this.save(kept, changed ? [updated] : []) : this.save(kept, [joined], { last_device: id });
    if (!known && this.window?.kind === "pairing") await this.closeWindow("joined");
    await saved;
    return kept;
  }

  /** Takes what a device reports. An unknown channel is passed over. `more` are values of the radio's own that change with it. */
  async observe(device: Device, key: string, endpoint: number, value: Value, more: Record<string, Value> = {}): Promise<void> {
    const channel = channelOf(device.channels, key, endpoint);
    if (!channel) return;
    const told = !isDeepStrictEqual(channel.value, value) || channel.status === "pending" || key === "alarm" || key === "scene"; // R-type-1
    Object.assign(channel, { value, observed_at: timestamp() });
    if (channel.desired === null || fulfils(channel, value, channel.desired)) channel.status = "synchronized";
    else if (channel.status !== "failed") channel.status = "diverged";
    if (told) await this.save(device, [{ type: "channel.observed", device_id: device.id, data: { key, endpoint, value } }], more);
  }

  /** Tells whether the radio reaches a device. */
  async setAvailable(device: Device, available: boolean): Promise<void> {
    if (device.available === available) return;
    device.available = available;
    for (const channel of device.channels) channel.available = available;
    await this.save(device, [{ type: available ? "device.available" : "device.unavailable", device_id: device.id, data: {} }]);
  }

  /** Tells when a device that sleeps is expected to wake. */
  async setWakesAt(device: Device, at: Date): Promise<void> {
    device.wakes_at = timestamp(at);
    await this.save(device, []);
  }

  /** Removes a device: it has left the network. Closes the removal window. `values` changes with it. */
  async remove(device: Device, values: Record<string, Value> = {}): Promise<void> {
    if (!this.devicesById.delete(device.id)) return;
    const saved = this.hub.change({ ...values, [`device/${device.id}`]: null }, [
      { type: "device.forgotten", device_id: device.id, data: { name: device.name } },
    ]);
    if (this.window?.kind === "removal") await this.closeWindow("joined");
    await saved;
  }

  /** Sends other events, and changes values of the radio's own with them; null deletes a value. */
  change(values: Record<string, Value>, events: HubEvent[] = []): Promise<void> {
    return this.hub.change(values, events);
  }

  /** Returns a value of the radio's own. */
  get(key: string): Value | undefined {
    return this.hub.get(key) as Value | undefined;
  }

  /** Stores a device and sends events; nothing of a device that has left. */
  private async save(device: Device, events: HubEvent[], more: Record<string, Value> = {}): Promise<void> {
    if (this.devicesById.get(device.id) === device) await this.hub.change({ ...more, [`device/${device.id}`]: device }, events);
  }

  private device({ device_id }: Params): Device {
    const device = this.devicesById.get(device_id as number);
    if (!device) throw new HubError("not_found", `no device ${String(device_id)}`);
    return device;
  }

  /** Returns a device that the radio reaches, to change its codes. */
  private lock(params: Params): Device {
    const device = this.device(params);
    this.requireRadio();
    if (device.secure === false) throw new HubError("command_refused", `${device.name} did not join securely enough`); // R-join-2
    if (!device.available) throw new HubError("hub_unavailable", `${device.name} cannot be reached`);
    return device;
  }

  private requireRadio(): void { // R-error-2
    if (!this.radio.ready()) throw new HubError("hub_unavailable", "the radio is down");
  }

  private async forget(device: Device): Promise<object> {
    if (device.available) throw new HubError("invalid_request", `${device.name} is still on the hub's network`);
    this.requireRadio();
    await this.radio.forget(device);
    await this.remove(device);
    return {};
  }

  /** The window that is open, or was when the gateway was killed. */
  private get window(): Window | undefined {
    return this.hub.get("window") as Window | undefined;
  }

  private async openWindow(kind: Kind, code?: string, seconds = WINDOW): Promise<object> {
    this.requireRadio();
    if (this.window) await this.closeWindow("asked");
    this.timer = setTimeout(() => void this.closeWindow("timeout").catch((error: Error) => this.log(error.message)), seconds * 1000);
    const kept = this.hub.change({ window: { kind, until: Date.now() + seconds * 1000, ...code === undefined ? {} : { code } } });
    try {
      await (kind === "pairing" ? this.radio.openPairing(code) : this.radio.openRemoval?.());
    } catch (error) {
      clearTimeout(this.timer);
      await this.hub.change({ window: null });
      throw error;
    }
    await kept;
    return { status: "open", expires_in: WINDOW };
  }

  /** Resolves when a window that a restart has interrupted is open again. */
  resumed(): Promise<void> {
    return this.resuming ??= this.openAgain();
  }

  /** Opens a window again that a restart has interrupted, for the rest of its time. */
  private async openAgain(): Promise<void> {
    const { window } = this, seconds = Math.min(WINDOW, ((window?.until ?? 0) - Date.now()) / 1000);
    if (!window) return;
    await this.hub.change({ window: null });
    if (seconds > 0) await this.openWindow(window.kind, window.code, seconds).catch((error: Error) => this.log(error.message));
  }

  private async closeAsked(kind: Kind): Promise<object> {
    this.requireRadio();
    if (this.window?.kind === kind) await this.closeWindow("asked");
    else if (kind === "pairing") await this.radio.closePairing("asked"); // R-join-4
    return {};
  }

  private async closeWindow(reason: Reason): Promise<void> {
    const kind = this.window?.kind, changed = this.hub.change({ window: null });
    clearTimeout(this.timer);
    if (kind === "pairing") await this.radio.closePairing(reason);
    if (kind === "removal") await this.radio.closeRemoval?.(reason);
    await changed;
  }

  private command(params: Params): object {
    const device = this.device(params), value = params["value"] as Value;
    const channel = channelOf(device.channels, params["key"], params["endpoint"] ?? 0);
    if (!channel) throw new HubError("not_found", `${device.name} has no such channel`);
    if (!channel.writable || !takes(channel, value)) {
      throw new HubError("invalid_request", `${channel.key} is read-only or does not take this value`);
    }
    if (device.secure === false) throw new HubError("command_refused", `${device.name} did not join securely enough`); // R-join-2
    this.requireRadio();
    const command = { device, channel, value }, { key, endpoint } = channel;
    this.radio.check(command);
    Object.assign(channel, { desired: value, desired_at: timestamp(), status: "pending" });
    void this.save(device, [{ type: "channel.desired", device_id: device.id, data: { key, endpoint, value } }])
      .then(() => this.drive(command, channel.desired_at));
    return { channel };
  }

  private async drive(command: Command, since: string | null): Promise<void> {
    const { device, channel } = command;
    const giveUp = () => { // unless a later command has come
      if (channel.desired_at === since) this.giveUp(device, channel);
    };
    try {
      await this.radio.drive(command);
      setTimeout(giveUp, GIVE_UP).unref();
    } catch (error) {
      this.log(`device ${device.id}, ${channel.key}: ${(error as Error).message}`);
      giveUp();
    }
  }

  private giveUp(device: Device, channel: Channel): void {
    if (channel.status !== "pending") return;
    channel.status = "failed";
    const { key, endpoint, status } = channel;
    void this.save(device, [{ type: "channel.status", device_id: device.id, data: { key, endpoint, status } }]);
  }
}

/** Returns one of several channels, by its key and endpoint. */
export function channelOf<Each extends ChannelSpec>(channels: Each[], key: unknown, endpoint: unknown): Each | undefined {
  return channels.find((each) => each.key === key && (each.endpoint ?? 0) === endpoint);
}

/** Returns a channel as it is described now, with the state that it has had. */
function newChannel(spec: ChannelSpec, device: Device | undefined): Channel {
  const known = channelOf(device?.channels ?? [], spec.key, spec.endpoint ?? 0);
  return {
    endpoint: 0, unit: null, readable: true, writable: false, capabilities: {}, value: null, observed_at: null,
    desired: null, desired_at: null, status: "unknown", available: device?.available ?? true, ...known, ...spec, kind: spec.key,
  };
}

/** Returns a device without what only the hub needs to know. */
function described({ ref: _, secure: __, available: ___, ...device }: Device): Device | object {
  return device;
}
