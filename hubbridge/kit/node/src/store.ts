import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, open, readFile, realpath, rename, type FileHandle } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { crc32 } from "node:zlib";

/** An event with its number, as it is sent. */
export interface StoredEvent { readonly seq: number; readonly text: string }

/** A change of the store. Those of one moment are one line of its file. */
interface Entry {
  log?: string;
  acked?: number;
  values?: Record<string, unknown>; // null deletes
  events?: StoredEvent[];
}

const COMPACT_AFTER = 4 << 20; // characters appended since the last snapshot
const EVENT_LIMIT = 16_384; // R-events-3

function line(entries: Entry[]): string {
  const text = JSON.stringify(entries);
  return `${crc32(text).toString(16).padStart(8, "0")} ${text}\n`;
}

function parse(text: string): Entry[] | undefined {
  const body = text.slice(9);
  return crc32(body) === parseInt(text.slice(0, 8), 16) ? JSON.parse(body) : undefined;
}

/**
 * Store keeps events and values in memory and in one file. The changes of one moment are one line
 * of the file, so a power cut keeps all of them or none; they are durable once their promises
 * resolve. An event is read by the sender only when it is durable: so no number is ever used twice.
 * A disk that fails ends the process.
 */
export class Store {
  log = "";
  newest = 0;
  /** The newest number that is on disk. */
  durable = 0;
  private events: StoredEvent[] = [];
  private readonly values = new Map<string, unknown>();
  private pending: Entry[] = []; // what is not being written yet
  private writing: Promise<void> = Promise.resolve();
  private file: FileHandle | undefined;
  private appended = 0;

  private constructor(
    private readonly dir: string, private readonly capacity: number, private readonly lock: Server | undefined,
  ) {}

  /** Opens the store of a folder, which keeps as many events as capacity says. */
  static async open(dir: string, capacity: number): Promise<Store> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const store = new Store(dir, capacity, process.platform === "linux" ? await lock(dir) : undefined);
    await store.load();
    await store.snapshot(); // a torn end of the file goes, and the folder is known to be writable
    return store;
  }

  private async load(): Promise<void> {
    const text = await readFile(join(this.dir, "journal"), "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
      return "";
    });
    const entries = text.split("\n").map(parse);
    for (const entry of entries.flat()) this.apply(entry ?? {});
    const end = entries.findLastIndex((entry) => entry !== undefined); // what follows is torn, and was never sent
    if (this.log === "" || entries.slice(0, end).includes(undefined)) { // R-log-2: the log is new or lost
      this.log = randomBytes(9).toString("hex");
      this.newest = 0;
      this.events = [];
    }
  }

  private apply({ log, acked = 0, values = {}, events = [] }: Entry): void {
    this.log = log ?? this.log;
    for (const [key, value] of Object.entries(values)) {
      if (value === null) this.values.delete(key);
      else this.values.set(key, value);
    }
    this.events.push(...events);
    this.newest = Math.max(this.newest, acked, events.at(-1)?.seq ?? 0); // R-ack-5
    const gone = Math.max(acked, this.newest - this.capacity); // the oldest: R-log-3
    this.events.splice(0, Math.max(0, gone + 1 - this.oldest));
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
    const first = Math.max(0, from - this.oldest), found = this.events.slice(first, first + count);
    const end = found.findIndex(({ seq, text }) => seq > this.durable || (bytes -= Buffer.byteLength(text) + 1) < 0);
    return end < 0 ? found : found.slice(0, end);
  }

  /**
   * Sets values (null deletes) and appends events, all or nothing. The change is seen in memory at
   * once; the promise resolves when it is durable. An event gets its number here.
   */
  change(values: Record<string, unknown>, events: object[] = []): Promise<void> {
    const numbered = events.map((event, at): StoredEvent => {
      const seq = this.newest + 1 + at, text = JSON.stringify({ seq, ...event });
      if (Buffer.byteLength(text) > EVENT_LIMIT) throw new RangeError("an event has over 16 KiB");
      return { seq, text };
    });
    return this.append({ values, events: numbered });
  }

  /** Drops the events that the cloud has stored. */
  async acked(through: number): Promise<void> {
    if (through >= this.oldest || through > this.newest) await this.append({ acked: through });
  }

  private append(entry: Entry): Promise<void> {
    this.apply(entry);
    this.pending.push(entry);
    return this.synced();
  }

  /** Resolves when all changes so far are durable. Changes of one moment share a write. */
  synced(): Promise<void> {
    this.writing = this.writing.then(() => this.write()).catch((error: unknown) => {
      setImmediate(() => { throw error; }); // also where nobody waits for the change
      return new Promise<void>(() => {}); // nothing is sent or answered any more
    });
    return this.writing;
  }

  private async write(): Promise<void> {
    const text = line(this.pending), newest = this.newest;
    if (this.pending.length === 0) return;
    this.appended += text.length;
    if (this.appended > COMPACT_AFTER) return this.snapshot();
    this.pending = [];
    await this.file?.appendFile(text);
    await this.file?.datasync();
    this.durable = newest;
  }

  /** Writes everything to a new file, which then takes the place of the old one. */
  private async snapshot(): Promise<void> {
    const newest = this.newest, path = join(this.dir, "journal");
    const text = [
      { log: this.log, acked: this.oldest - 1 },
      ...this.events.map((event) => ({ events: [event] })),
      ...[...this.values].map(([key, value]) => ({ values: { [key]: value } })),
    ].map((entry) => line([entry])).join("");
    this.pending = []; // it is in the text
    const file = await open(`${path}.new`, "w", 0o600), folder = await open(this.dir);
    await file.writeFile(text);
    await file.sync();
    await rename(`${path}.new`, path);
    await folder.sync();
    await folder.close();
    await this.file?.close();
    [this.file, this.appended, this.durable] = [file, 0, newest];
  }

  /** Writes what is pending, and lets another process open the folder. */
  async close(): Promise<void> {
    await this.synced();
    await this.file?.close();
    this.lock?.close();
  }
}

/** Takes a folder for this process, by a name that the system frees when the process ends. */
async function lock(dir: string): Promise<Server> {
  const name = createHash("sha256").update(await realpath(dir)).digest("hex");
  const server = createServer().unref().listen(`\0hubcloud-${name}`);
  await once(server, "listening").catch(() => { throw new Error(`${dir}: another process uses this folder`); });
  return server;
}
