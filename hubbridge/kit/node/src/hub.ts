import { Link } from "./link.js";
import { Store } from "./store.js";
import { HubError, type HubEvent, type HubOptions, type Params } from "./types.js";

const SETUP_CODE = /^(\d{5}|\d{5}([- ]?\d{5}){7}|90\d{50,200}|MT:[0-9A-Z.-]{10,200})$/;
const DAY = 86_400_000; // ms
const FORGET_COMMANDS = 10_000; // the newest are kept
const LISTED = ["key", "endpoint", "kind", "unit", "available", "readable", "writable", "capabilities"];
const COMMANDED = [...LISTED.slice(0, 5), "value", "observed_at", "desired", "desired_at", "status"];

type Answer = { result: object } | { error: { type: string; message: string } };
interface Remembered { at: number; answer: Answer }

/**
 * What a hub answers, by the method of the request. Devices and channels may be given whole: what
 * the protocol leaves out of a list or an answer is left out, and `last_event` is added. The handler of
 * channels.command is synchronous: what it changes is stored together with its answer, and it runs
 * once for a command_id. A hub whose locks take codes has credentials.list, set and remove; its hello says so.
 */
export type Handlers = Record<string, (params: Params) => object | Promise<object>>;

/** Returns the time as the protocol writes it. */
export const timestamp = (at = new Date()): string => at.toISOString().replace("Z", "000Z");

function checkSlot({ slot, code = "0000" }: Params): void {
  if (!Number.isSafeInteger(slot) || (slot as number) < 1) throw new HubError("invalid_request", "slot must be a number from 1");
  if (typeof code !== "string" || !/^\d{4,10}$/.test(code)) throw new HubError("invalid_request", "code must be 4 to 10 digits");
}

function pick(channel: object, members: string[]): object {
  return Object.fromEntries(Object.entries(channel).filter(([member]) => members.includes(member)));
}

/** Hub answers the cloud's requests, and keeps values, and the events that the cloud has not stored yet, on disk. */
export class Hub extends Link {
  private constructor(options: HubOptions, store: Store, private readonly handlers: Handlers) {
    super(options, store);
  }

  /** Opens the folder of a hub. */
  static async open(options: HubOptions, handlers: Handlers): Promise<Hub> {
    return new Hub(options, await Store.open(options.dir, options.capacity ?? 10_000), handlers);
  }

  /**
   * Sets values (null deletes) and sends events, in the order of the calls. All changes of one
   * moment are kept or none. The promise resolves when they are on disk; an event is sent after that.
   */
  async change(values: Record<string, unknown>, events: HubEvent[] = []): Promise<void> {
    const time = timestamp(), clock_trusted = this.clockTrusted;
    await this.store.change(
      Object.fromEntries(Object.entries(values).map(([key, value]) => [`value/${key}`, value])),
      events.map(({ type, device_id, data }) => ({ type, device_id, time, clock_trusted, data })),
    );
    this.work();
  }

  /** Returns a value that change has set. */
  get(key: string): unknown {
    return this.store.get(`value/${key}`);
  }

  /** Returns the keys and values whose keys begin with a prefix. */
  entries(prefix: string): [string, unknown][] {
    return this.store.entries(`value/${prefix}`);
  }

  protected override get setsCodes(): boolean { // R-credential-1
    return Object.hasOwn(this.handlers, "credentials.set");
  }

  protected override async answer(method: string, params: Params): Promise<Answer> {
    try {
      if (method === "channels.command") return this.command(params);
      const last_event = this.store.newest, code = params["setup_code"] ?? "00000";
      if (method === "pairing.open" && !(typeof code === "string" && SETUP_CODE.test(code.trim()))) {
        throw new HubError("invalid_request", "setup_code cannot be read"); // R-pairing-2
      }
      if (method === "credentials.set" || method === "credentials.remove") checkSlot(params);
      const result = await this.handle(method, params);
      if ("device" in result) return { result: { ...result, last_event } };
      if (!("devices" in result)) return { result };
      const devices = (result.devices as { channels: object[] }[])
        .map((device) => ({ ...device, channels: device.channels.map((each) => pick(each, LISTED)) }));
      return { result: { devices, last_event } };
    } catch (error) {
      return this.fault(error);
    }
  }

  private handle(method: string, params: Params): object | Promise<object> {
    const handler = Object.hasOwn(this.handlers, method) && this.handlers[method];
    if (!handler) throw new HubError("unknown_method", `no method ${method}`); // R-request-6
    return handler(params);
  }

  private fault(error: unknown): Answer {
    const type = error instanceof HubError ? error.type : "hub_error";
    if (!(error instanceof HubError)) this.log(`request failed: ${error instanceof Error ? error.stack : String(error)}`);
    return { error: { type, message: error instanceof Error ? error.message : "the hub failed" } };
  }

  /** Runs a command once: R-command-4, R-command-5. */
  private command(params: Params): Answer {
    const id = params["command_id"];
    if (typeof id !== "string" || id.length < 1 || id.length > 255) {
      throw new HubError("invalid_request", "command_id must have 1 to 255 characters");
    }
    const remembered = this.store.get(`command/${id}`) as Remembered | undefined;
    if (remembered) return remembered.answer;
    let answer: Answer;
    try {
      if (!this.clockTrusted) throw new HubError("hub_unavailable", "the hub does not know the time yet"); // R-error-2
      const { channel } = this.handle("channels.command", params) as { channel: object };
      answer = { result: { channel: pick(channel, COMMANDED) } };
    } catch (error) {
      answer = this.fault(error);
      if ("error" in answer && answer.error.type === "hub_unavailable") return answer; // R-command-6
    }
    void this.store.change({ ...this.forgetCommands(), [`command/${id}`]: { at: Date.now(), answer } });
    return answer;
  }

  /** Returns what deletes the answers of more than a day ago. */
  private forgetCommands(): Record<string, unknown> {
    const now = Date.now(), changes: Record<string, unknown> = {}, known = this.store.entries("command/");
    for (const [at, [key, value]] of known.entries()) {
      const remembered = value as Remembered, age = now - remembered.at;
      if (age > DAY || known.length - at >= FORGET_COMMANDS) changes[key] = null;
      else if (age < 0) changes[key] = { ...remembered, at: now }; // stamped by a clock that was wrong
    }
    return changes;
  }
}
