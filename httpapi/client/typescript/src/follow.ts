import { ApiError, ConnectionError, isRepeatable, ProtocolError, ResyncError } from "./errors.js";
import type { Call, FeedOptions, FollowOptions, Snapshot, StartPosition } from "./options.js";
import type { Source } from "./source.js";
import { blocks, type Block } from "./sse.js";
import { anySignal, sleep } from "./timing.js";
import type { Transport } from "./transport.js";
import type { Event, EventPage, FeedEvent, FeedPage, State } from "./types.js";

/** How many cursors are remembered, so that no event is yielded twice. */
const remembered = 16_384;
/** How often invalid data may be read in a row before that is an error. */
const mostInvalid = 3;
/** How long a stream must have lasted for its end not to count as a failure, in ms. */
const lasted = 10_000;
const longestPause = 60_000;

/** Follower is one range over the events of a source. */
export class Follower {
  readonly #seen = new Set<string>();
  #position: string;
  #failures = 0;
  #invalid = 0;
  #pause = 0;
  #isCaughtUp = false;

  constructor(
    readonly transport: Transport,
    readonly resync: (hubId: string, options: Call) => Promise<Snapshot>,
    readonly source: Source,
    readonly from: StartPosition,
    readonly options: FollowOptions & FeedOptions,
  ) {
    this.#position = typeof from === "object" && "after" in from ? from.after : "";
  }

  async *run(): AsyncGenerator<FeedEvent, void, undefined> {
    const signal = this.options.signal;
    for (;;) {
      const began = Date.now();
      try {
        signal?.throwIfAborted();
        yield* this.#connect();
        if (Date.now() - began < lasted) {
          throw new ConnectionError("the service has ended the event stream");
        }
        this.#progressed();
      } catch (error) {
        signal?.throwIfAborted();
        const wait = await this.#waitAfter(error);
        this.transport.onRetry({ error, wait, path: this.source.path });
        await sleep(wait, signal);
      }
    }
  }

  /** Reads old events page by page if there is no position yet, otherwise one stream to its end. */
  async *#connect(): AsyncGenerator<FeedEvent, void, undefined> {
    const signal = this.options.signal;
    if (this.#beginsWithStates()) {
      yield* this.#stream();
      return;
    }
    if (this.#position === "" && this.from === "now") {
      this.#move(await this.transport.positionOf(this.source, { signal }));
    }
    while (this.#position === "") { // a stream without a cursor would start at the next new event
      const page = await this.transport.pageOf<EventPage | FeedPage>(
        this.source, { ...(typeof this.from === "object" && this.from), limit: 500, signal, reader: this.options.reader },
      );
      for (const [index, event] of page.data.entries()) {
        yield* this.#deliver(event, index === page.data.length - 1 ? page.next_cursor : "");
      }
      this.#move(page.next_cursor);
      if (!page.has_more) {
        this.#caughtUp();
      }
    }
    yield* this.#stream();
  }

  #beginsWithStates(): boolean {
    return this.#position === "" && this.from === "now" && this.options.onState !== undefined && this.source.isFeed;
  }

  async *#stream(): AsyncGenerator<FeedEvent, void, undefined> {
    const stop = new AbortController();
    const stalled = () => stop.abort(new ConnectionError("the event stream was silent for too long"));
    const limit = this.options.stallTimeout ?? 75_000;
    let timer = setTimeout(stalled, limit);
    const signal = anySignal(stop.signal, this.options.signal);
    try {
      const stream = await this.transport.openStream(
        this.source, this.#position, signal, this.options.reader, this.options.onCaughtUp !== undefined && !this.#isCaughtUp,
        this.#beginsWithStates(),
      );
      const alive = async function* () {
        for await (const chunk of stream) {
          clearTimeout(timer); // the time that the caller takes for an event is no silence
          yield chunk;
          timer = setTimeout(stalled, limit);
        }
      };
      for await (const block of blocks(alive(), (ms) => (this.#pause = Math.min(ms, longestPause)))) {
        yield* this.#take(block);
      }
    } finally {
      clearTimeout(timer);
      stop.abort();
    }
  }

  /** Handles a block: an event, or a position. */
  async *#take(block: Block): AsyncGenerator<FeedEvent, void, undefined> {
    if (block.data === undefined) {
      if (block.id) { // an empty id would make the next connection start at new events
        this.#move(block.id);
        this.#progressed();
      }
      return;
    }
    let event: Event;
    try {
      event = JSON.parse(block.data);
    } catch {
      throw new ProtocolError("an event that is not valid JSON");
    }
    const type: string | undefined = event?.type;
    if (type === "snapshot.state") {
      this.options.onState?.((event as { data: unknown }).data as State);
      this.#progressed();
      return;
    }
    if (type === "snapshot.complete") {
      this.#move(block.id ?? "");
      return;
    }
    if (type === "stream.caught_up") {
      this.#move(block.id ?? "");
      this.#caughtUp();
      return;
    }
    if (this.source.isFeed ? !block.id : block.id !== undefined && block.id !== event.cursor) {
      throw new ProtocolError(`the event ${event.cursor} has the id ${block.id}`);
    }
    yield* this.#deliver(event, block.id ?? "");
  }

  /** Yields an event unless it has been yielded before. position is the feed's after the event, or empty; in a hub's log the event's cursor is. */
  async *#deliver(event: Event, position: string): AsyncGenerator<FeedEvent, void, undefined> {
    if (!event?.cursor || !event.type) {
      throw new ProtocolError("an event without cursor or type");
    }
    const identity = this.source.isFeed ? `${event.hub_id}/${event.cursor}` : event.cursor;
    if (this.#seen.has(identity) && event.type !== "feed.gap") { // several gaps can have the same cursor
      return; // the position is at this event or after it already
    }
    this.#seen.add(identity);
    if (this.#seen.size > remembered) {
      for (const oldest of this.#seen) {
        this.#seen.delete(oldest);
        break;
      }
    }
    this.#progressed();
    if (this.source.isFeed && position !== "") {
      yield Object.assign(event, { position });
      this.#position = position;
      return;
    }
    yield event;
    if (!this.source.isFeed) {
      this.#position = event.cursor;
    }
  }

  /** Continues from a position that is not a new event's. */
  #move(position: string): void {
    if (position === this.#position || this.#seen.has(position)) {
      return;
    }
    this.#position = position;
    this.options.onPosition?.(position);
  }

  #caughtUp(): void {
    if (!this.#isCaughtUp) {
      this.#isCaughtUp = true;
      this.options.onCaughtUp?.();
    }
  }

  #progressed(): void {
    this.#failures = 0;
    this.#invalid = 0;
  }

  /** The wait before the next connection; throws the error if it ends the sequence. */
  async #waitAfter(error: unknown): Promise<number> {
    const wait = Math.max(this.transport.backoff(this.#failures++), this.#pause);
    if (error instanceof ConnectionError || (error instanceof ProtocolError && ++this.#invalid < mostInvalid)) {
      return wait;
    }
    if (!(error instanceof ApiError)) {
      throw error; // invalid data, again and again, or of the caller's own functions
    }
    if (error.type === "cursor_expired") {
      return (await this.#resync(error)) ? 0 : wait;
    }
    if (!isRepeatable(error.status)) {
      throw error;
    }
    return Math.max((error.retryAfter ?? 0) * 1000, wait);
  }

  /** Continues from the hub's devices. Returns false if they cannot be read at the moment. */
  async #resync(cause: ApiError): Promise<boolean> {
    const hubId = this.source.hubId;
    if (!this.options.onResync || hubId === undefined) {
      throw new ResyncError("the cursor has expired: read the devices again, then follow from the new cursor", { cause });
    }
    let snapshot: Snapshot;
    try {
      snapshot = await this.resync(hubId, { signal: this.options.signal });
    } catch (error) {
      if (error instanceof ConnectionError || (error instanceof ApiError && isRepeatable(error.status))) {
        return false;
      }
      throw error;
    }
    await this.options.onResync(snapshot);
    this.#seen.clear();
    this.#position = snapshot.cursor;
    return true;
  }
}
