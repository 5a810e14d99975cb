import { HubError, type HubOptions } from "@hubcloud/hub";
import mqtt, { type MqttClient } from "mqtt";
import { DeviceHub, channelOf } from "../../devices/devicehub.js";
import type { Command, Device, Radio, Value } from "../../devices/types.js";
import { channelsOf, mappings, type Expose, type Mapping } from "./exposes.js";

/** A device in the list that Zigbee2MQTT publishes on bridge/devices. */
interface ZigbeeDevice {
  ieee_address: string;
  friendly_name: string;
  type: string;
  disabled?: boolean;
  definition?: { vendor?: string; model?: string; description?: string; exposes?: Expose[] } | null;
}

interface Known { name: string; device: Device; maps: Mapping[] }

export interface BridgeOptions extends HubOptions {
  log: (line: string) => void;
  /** Address of the broker that Zigbee2MQTT uses, such as mqtt://127.0.0.1:1883. */
  broker: string;
  /** Zigbee2MQTT's base_topic. Defaults to zigbee2mqtt. */
  baseTopic?: string;
  username?: string;
  password?: string;
}

const ANSWER = 8000; // ms: the cloud waits for 10 s

/** Bridge is the radio of a hub: what Zigbee2MQTT publishes becomes devices, and commands become its messages. */
export class Bridge implements Radio {
  private hub!: DeviceHub;
  private readonly client: MqttClient;
  private readonly base: string;
  private readonly known = new Map<string, Known>(); // by address
  private readonly answers = new Map<string, (answer: { status?: string; error?: string }) => void>();
  private online = false;
  private queue: Promise<void> = Promise.resolve(); // messages are handled in their order
  private transaction = 0;

  private constructor(options: BridgeOptions) {
    this.base = options.baseTopic ?? "zigbee2mqtt";
    const { username, password, log } = options;
    this.client = mqtt.connect(options.broker, {
      reconnectPeriod: 1000, queueQoSZero: false, manualConnect: true,
      ...username !== undefined && { username }, ...password !== undefined && { password },
    });
    this.client.on("connect", () => this.client.subscribe(`${this.base}/#`));
    this.client.on("error", (error) => log(`broker: ${error.message}`));
    this.client.on("close", () => { this.online = false; });
    this.client.on("message", (topic, payload, { retain }) => {
      this.queue = this.queue.then(() => this.received(topic.slice(this.base.length + 1), payload.toString(), retain))
        .catch((error: Error) => log(`${topic}: ${error.message}`));
    });
  }

  /** Opens the hub and connects to the broker. The hub connects with run. */
  static async open(options: BridgeOptions): Promise<Bridge> {
    const bridge = new Bridge(options);
    bridge.hub = await DeviceHub.open(options, bridge);
    bridge.client.connect();
    return bridge;
  }

  run(): Promise<void> {
    return this.hub.run();
  }

  async close(): Promise<void> {
    await this.client.endAsync(true);
    await this.queue;
    await this.hub.close();
  }

  get devices(): Device[] {
    return this.hub.devices;
  }

  private async received(topic: string, payload: string, retained: boolean): Promise<void> {
    if (payload === "" || topic.endsWith("/set") || topic.endsWith("/get") || topic.startsWith("bridge/request/")) return;
    const message: unknown = topic === "bridge/logging" ? undefined : parse(payload);
    if (topic === "bridge/state") this.online = stateOf(message) === "online";
    else if (topic === "bridge/devices") await this.listed(message as ZigbeeDevice[]);
    else if (topic === "bridge/event") await this.happened(message as { type: string; data: Record<string, string> });
    else if (topic.startsWith("bridge/response/")) {
      const answer = message as { transaction?: string; status?: string; error?: string };
      this.answers.get(answer.transaction ?? "")?.(answer);
    } else if (topic.endsWith("/availability")) {
      const found = this.named(topic.slice(0, -"/availability".length));
      if (found) await this.hub.setAvailable(found.device, stateOf(message) === "online");
    } else {
      const found = this.named(topic);
      if (found && typeof message === "object" && message !== null) await this.reported(found, message as Record<string, unknown>, retained);
    }
  }

  private named(name: string): Known | undefined {
    return [...this.known.values()].find((each) => each.name === name);
  }

  /** Takes the whole list of devices: those that are not in it have left. */
  private async listed(list: ZigbeeDevice[]): Promise<void> {
    if (!Array.isArray(list)) return;
    const present = list.filter((each) => each.type !== "Coordinator" && !each.disabled);
    for (const each of present) {
      const { ieee_address, friendly_name, definition } = each, maps = mappings(definition?.exposes ?? []);
      const device = await this.hub.put(ieee_address, {
        name: friendly_name, manufacturer: definition?.vendor ?? "", model: definition?.model ?? "",
        channels: channelsOf(maps),
      });
      this.known.set(ieee_address, { name: friendly_name, device, maps });
      this.ask(friendly_name, device, maps);
    }
    for (const device of this.hub.devices) {
      if (!present.some((each) => each.ieee_address === device.ref)) await this.gone(device.ref);
    }
  }

  /** Asks for values that have never been reported. What cannot be asked for is reported in time. */
  private ask(name: string, device: Device, maps: Mapping[]): void {
    const properties = maps.filter(({ command, spec }) =>
      command && channelOf(device.channels, spec.key, spec.endpoint ?? 0)?.observed_at === null);
    if (properties.length === 0) return;
    this.client.publish(`${this.base}/${name}/get`, JSON.stringify(Object.fromEntries(properties.map((map) => [map.ask ?? map.property, ""]))));
  }

  private async gone(address: string): Promise<void> {
    const device = this.hub.find(address);
    this.known.delete(address);
    if (device) await this.hub.remove(device, { [`alarms/${address}`]: null });
  }

  private async happened(event: { type: string; data: Record<string, string> }): Promise<void> {
    const { ieee_address = "", status } = event.data;
    if (event.type === "device_leave") await this.gone(ieee_address);
    if (event.type === "device_interview" && status === "failed") await this.hub.change({}, [{ type: "device.join_failed", device_id: null, data: { reason: "radio" } }]);
  }

  private async reported({ device, maps }: Known, message: Record<string, unknown>, retained: boolean): Promise<void> {
    for (const map of maps) {
      if (!(map.property in message) || message[map.property] === null) continue;
      const { key, endpoint = 0 } = map.spec, value = map.report(message[map.property], message);
      if (value === undefined || retained && (key === "scene" || map.property === "action")) continue;
      if (key === "alarm" && map.property !== "action") await this.alarm(device, map, value as { active: boolean });
      else await this.hub.observe(device, key, endpoint, value);
    }
  }

  /** Tells an alarm that has begun or ended: its state comes with every message. What was told is kept over restarts. */
  private async alarm(device: Device, { property, spec }: Mapping, value: { active: boolean }): Promise<void> {
    const name = `alarms/${device.ref}`, { [property]: told = false, ...others } = (this.hub.get(name) ?? {}) as Record<string, boolean>;
    if (told === value.active) return;
    const alarms = value.active ? { ...others, [property]: true } : others;
    await this.hub.observe(device, spec.key, spec.endpoint ?? 0, value as unknown as Value, { [name]: alarms });
  }

  /** Asks Zigbee2MQTT for something and waits for its answer. */
  private async request(what: string, payload: object): Promise<void> {
    const transaction = `hub-${process.pid}-${++this.transaction}`;
    const answered = new Promise<{ status?: string; error?: string }>((done, failed) => {
      this.answers.set(transaction, done);
      setTimeout(() => failed(new HubError("hub_unavailable", "Zigbee2MQTT does not answer")), ANSWER).unref();
    });
    try {
      this.client.publish(`${this.base}/bridge/request/${what}`, JSON.stringify({ ...payload, transaction }));
      const { status, error } = await answered;
      if (status !== "ok") throw new HubError("hub_error", error ?? "Zigbee2MQTT has rejected it");
    } finally {
      this.answers.delete(transaction);
    }
  }

  // What the cloud asks for

  ready(): boolean {
    return this.client.connected && this.online;
  }

  private target({ device, channel, value }: Command): { name: string; payload: object } {
    const found = this.known.get(device.ref);
    const map = found?.maps.find(({ spec }) => channelOf([spec], channel.key, channel.endpoint));
    if (!found || !map?.command) throw new HubError("hub_unavailable", `${device.name} is not known yet`);
    const payload = map.command(value);
    if (payload === undefined) throw new HubError("invalid_request", `${channel.key} does not take this value`);
    return { name: found.name, payload };
  }

  check(command: Command): void {
    this.target(command);
  }

  async drive(command: Command): Promise<void> {
    const { name, payload } = this.target(command);
    await this.client.publishAsync(`${this.base}/${name}/set`, JSON.stringify(payload), { qos: 1 });
  }

  async forget(device: Device): Promise<void> {
    await this.request("device/remove", { id: device.ref, force: true });
  }

  /** Zigbee devices join without a setup code, so one that is given is not needed. */
  async openPairing(): Promise<void> {
    await this.request("permit_join", { time: 120 });
  }

  async closePairing(): Promise<void> {
    await this.request("permit_join", { time: 0 });
  }

  // A removal window needs nothing: a device whose button is pressed leaves, and Zigbee2MQTT tells it.
}

function parse(payload: string): unknown {
  try {
    return JSON.parse(payload);
  } catch {
    return payload; // the legacy form of availability and state
  }
}

function stateOf(message: unknown): unknown {
  return typeof message === "object" && message !== null ? (message as { state?: unknown }).state : message;
}
