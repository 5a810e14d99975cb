import { createHash, randomBytes } from "node:crypto";
import { unlinkSync } from "node:fs";
import { mkdir, open, readFile, rename, type FileHandle } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { crc32 } from "node:zlib";

/** An event with its number, as it is sent. */
export interface StoredEvent { readonly seq: number; readonly text: string; readonly bytes: number }

type StoredRecord =
  | ["log", string, number] // the log's identity and its newest number
  | ["event", number, string]
  | ["acked", number]
  | ["set", string, unknown] // null deletes

const COMPACT_AFTER = 4 << 20; // bytes appended since the last snapshot
const EVENT_LIMIT = 16_384; // R-events-3

function line(records: StoredRecord[]): string {
  const text = JSON.stringify(records);
  return `${crc32(text).toString(16).padStart(8, "0")} ${text}\n`;
}

function parse(text: string): StoredRecord[] | undefined {
  const body = text.slice(9);
  return crc32(body) === parseInt(text.slice(0, 8), 16) ? JSON.parse(body) : undefined;
}

/**
 * Store keeps events and values in memory and in one file. Each call of change is one line of the
 * file, so a power cut keeps it whole or not at all; it is durable once its promise resolves. An
 * event is read by the sender only when it is durable: so no number is ever used twice.
 */
export class Store {
  log = "";
  newest = 0;
  /** The newest number that is on disk. */
  durable = 0;
  private events: StoredEvent[] = [];
  private bytes = 0;
  private readonly values = new Map<string, unknown>();
  private pending: { records: StoredRecord[]; done: () => void }[] = [];
  private flushing: Promise<void> | undefined;
  private file: FileHandle | undefined;
  private lock: Server | undefined;
  private appended = 0;
  private closed = false;

  private constructor(
    private readonly dir: string,
    private readonly capacity: { events: number; bytes: number },
    private readonly failed: (error: unknown) => void,
  ) {}

  /** Opens the store of a folder, which one process at a time may do. */
  static async open(
    dir: string, capacity: { events: number; bytes: number }, failed: (error: unknown) => void,
  ): Promise<Store> {
    const store = new Store(dir, capacity, failed);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    store.lock = await lockFolder(dir);
    await store.load();
    await store.snapshot(); // a torn end of the file goes, and the folder is known to be writable
    return store;
  }

  private async load(): Promise<void> {
    let text = "";
    try {
      text = await readFile(join(this.dir, "journal"), "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    let bad = 0, damaged = false;
    for (const each of text.split("\n")) {
      const records = parse(each);
      if (!records) {
        bad++;
        continue;
      }
      damaged ||= bad > 0; // an end that is torn was never sent; a hole was
      for (const record of records) this.apply(record);
    }
    if (this.log === "" || damaged) { // R-log-2: the log is new or lost
      this.log = randomBytes(9).toString("hex");
      this.newest = this.bytes = 0;
      this.events = [];
    }
    this.durable = this.newest;
  }

  private apply(record: StoredRecord): void {
    switch (record[0]) {
      case "log":
        [, this.log, this.newest] = record;
        break;
      case "event": {
        const event = { seq: record[1], text: record[2], bytes: Buffer.byteLength(record[2]) };
        this.events.push(event);
        this.newest = Math.max(this.newest, event.seq);
        this.bytes += event.bytes;
        while (this.events.length > this.capacity.events || this.bytes > this.capacity.bytes) {
          this.bytes -= this.events.shift()!.bytes; // the oldest: R-log-3
        }
        break;
      }
      case "acked": {
        const covered = this.events.findIndex((event) => event.seq > record[1]);
        const gone = this.events.splice(0, covered < 0 ? this.events.length : covered);
        for (const event of gone) this.bytes -= event.bytes;
        this.newest = Math.max(this.newest, record[1]); // R-ack-5
        break;
      }
      case "set":
        if (record[2] === null) this.values.delete(record[1]);
        else this.values.set(record[1], record[2]);
    }
  }

  /** The oldest number that is held: newest + 1 if none is. */
  get oldest(): number {
    return this.events[0]?.seq ?? this.newest + 1;
  }

  get(key: string): unknown {
    return this.values.get(key);
  }

  /** Returns the keys and values whose keys begin with a prefix. */
  entries(prefix: string): [string, unknown][] {
    return [...this.values].filter(([key]) => key.startsWith(prefix));
  }

  /** Returns durable events from a number on, within a count and a size. */
  read(from: number, count: number, bytes: number): StoredEvent[] {
    const first = this.events[0];
    if (!first) return [];
    const start = Math.max(0, from - first.seq), found: StoredEvent[] = [];
    for (let at = start; at < this.events.length && found.length < count; at++) {
      const event = this.events[at]!;
      if (event.seq > this.durable || (bytes -= event.bytes + 1) < 0) break;
      found.push(event);
    }
    return found;
  }

  /**
   * Sets values (null deletes) and appends events, all or nothing. The change is seen in memory at
   * once; the promise resolves when it is durable. An event gets its number here.
   */
  change(values: Record<string, unknown>, events: object[] = []): Promise<void> {
    let number = this.newest;
    const records: StoredRecord[] = Object.entries(values).map(([key, value]) => ["set", key, value]);
    for (const event of events) {
      const text = JSON.stringify({ seq: ++number, ...event });
      if (Buffer.byteLength(text) > EVENT_LIMIT) throw new RangeError("an event has over 16 KiB");
      records.push(["event", number, text]);
    }
    return this.append(records);
  }

  /** Drops the events that the cloud has stored. */
  acked(through: number): Promise<void> {
    return through < this.oldest && through <= this.newest ? Promise.resolve()
      : this.append([["acked", through]]);
  }

  /** Resolves when all changes so far are durable. */
  synced(): Promise<void> {
    return this.pending.length > 0 || this.flushing ? this.append([]) : Promise.resolve();
  }

  private append(records: StoredRecord[]): Promise<void> {
    for (const record of records) this.apply(record);
    const copy = structuredClone(records); // a value may change before it is written
    return new Promise((done) => {
      this.pending.push({ records: copy, done });
      void this.flush();
    });
  }

  private flush(): Promise<void> {
    this.flushing ??= this.write().finally(() => {
      this.flushing = undefined;
      if (this.pending.length > 0 && !this.closed) void this.flush(); // came as the writer ended
    });
    return this.flushing;
  }

  /** Writes what is pending. A disk that fails is tried again: nothing is sent meanwhile. */
  private async write(): Promise<void> {
    await Promise.resolve(); // changes of one moment share a write
    while (this.pending.length > 0) {
      const batch = this.pending.splice(0), newest = this.newest;
      try {
        if (!this.file || this.appended > COMPACT_AFTER) {
          await this.snapshot();
        } else {
          const text = line(batch.flatMap((each) => each.records));
          await this.file.appendFile(text);
          await this.file.datasync();
          this.appended += text.length;
          this.durable = newest;
        }
        for (const each of batch) each.done();
      } catch (error) {
        this.pending.unshift(...batch);
        this.failed(error);
        await this.file?.close().catch(() => undefined);
        this.file = undefined; // whatever is in it: a snapshot takes its place
        await sleep(1000);
      }
    }
  }

  /** Writes everything to a new file, which then takes the place of the old one. */
  private async snapshot(): Promise<void> {
    const records: StoredRecord[] = [["log", this.log, this.newest]];
    for (const event of this.events) records.push(["event", event.seq, event.text]);
    for (const [key, value] of this.values) records.push(["set", key, value]);
    const text = records.map((record) => line([record])).join("");
    const newest = this.newest; // all that is pending is in the text
    const path = join(this.dir, "journal"), file = await open(`${path}.new`, "w", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
      await rename(`${path}.new`, path);
      const folder = await open(this.dir);
      await folder.sync().finally(() => folder.close());
    } catch (error) {
      await file.close();
      throw error;
    }
    await this.file?.close();
    [this.file, this.appended, this.durable] = [file, 0, newest];
  }

  /** Writes what is pending, and lets another process open the folder. */
  async close(): Promise<void> {
    await this.synced();
    this.closed = true;
    await this.file?.close();
    this.lock?.close();
  }
}

/** Takes the folder for this process: a socket, which ends with the process however it ends. */
async function lockFolder(dir: string): Promise<Server> {
  const hash = createHash("sha256").update(resolve(dir)).digest("hex").slice(0, 16);
  const inside = join(dir, "lock"), short = Buffer.byteLength(inside) < 100;
  const path = process.platform === "win32" ? `\\\\.\\pipe\\hubcloud-${hash}`
    : short ? inside : join(tmpdir(), `hubcloud-${hash}`);
  const listen = (): Promise<Server> => new Promise((done, failed) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", failed).listen(path, () => done(server.unref()));
  });
  return listen().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EADDRINUSE") throw error;
    const inUse = await new Promise<boolean>((done) => {
      const socket = connect(path, () => { socket.destroy(); done(true); });
      socket.once("error", () => done(false));
    });
    if (inUse) throw new Error(`${dir}: another process uses this folder`);
    unlinkSync(path);
    return listen();
  });
}
