import { ApiError, ConnectionError, errorOf, isRepeatable, ProtocolError } from "./errors.js";
import type { Call, ClientOptions, PageOptions, Retry, SendOptions } from "./options.js";
import { readerHeader, type Source } from "./source.js";
import { blocks, chunks } from "./sse.js";
import { limitedSignal, sleep } from "./timing.js";
import type { AuditPage, EventPage, FeedPage, Lag } from "./types.js";

/** A request. */
export interface Request extends Call {
  method: string;
  path: string;
  query?: Record<string, string | number | readonly string[] | undefined>;
  body?: unknown;
  idempotencyKey?: string;
  /** The name of a reader of events. */
  reader?: string | undefined;
  /** How long the service may hold the request open on purpose, in ms. */
  held?: number;
  /** The request must not reach the service twice: it is not repeated after a failed connection. */
  once?: boolean;
  /** not_found is a success if an earlier attempt may have removed the thing. */
  removes?: boolean;
}

/**
 * Transport sends requests and repeats them as the contract says: after 429 once Retry-After has passed; after 500, 502, 503 and 504 with
 * backoff; and after a failed connection.
 */
export class Transport {
  readonly #base: string;
  readonly #key: string | undefined;
  readonly #timeout: number;
  readonly #retry: Required<Retry>;
  readonly #fetch: typeof fetch;
  readonly onRetry: NonNullable<ClientOptions["onRetry"]>;

  constructor(options: ClientOptions) {
    if (!/^(https?:\/\/[^/?#]+|\/)[^?#]*$/.test(options.baseUrl)) {
      throw new TypeError("baseUrl: must be http://… or https://…, with the API's version, such as https://api.example.com/v1");
    }
    if (options.apiKey !== undefined && !/^[!-~]+$/.test(options.apiKey)) {
      throw new TypeError("apiKey: must be printable ASCII without spaces, as the portal showed it");
    }
    this.#base = options.baseUrl.replace(/\/+$/, "");
    this.#key = options.apiKey;
    this.#timeout = options.timeout ?? 40_000;
    const minBackoff = options.retry?.minBackoff ?? 200;
    const maxBackoff = Math.max(options.retry?.maxBackoff ?? 10_000, minBackoff);
    this.#retry = { maxElapsed: options.retry?.maxElapsed ?? 60_000, minBackoff, maxBackoff };
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.onRetry = options.onRetry ?? (() => undefined);
  }

  /** The newest position of a source. */
  async positionOf(source: Source, options: Call): Promise<string> {
    return this.repeated({ method: "GET", path: `${source.path}/stream`, ...options }, async () => {
      const ended = new AbortController();
      const signal = limitedSignal(this.#timeout, ended.signal, options.signal);
      const stream = await this.openStream(source, "", signal);
      try {
        for await (const block of blocks(stream, () => undefined)) {
          if (block.id) {
            return block.id;
          }
        }
      } finally {
        ended.abort();
      }
      throw new ConnectionError("the event stream ended before its position");
    });
  }

  /** One page of a source. */
  async pageOf<P extends EventPage | FeedPage | AuditPage>(source: Source, options: PageOptions): Promise<P & { lag: Lag }> {
    const response = await this.send({
      method: "GET", path: source.path, held: (options.wait ?? 0) * 1000, signal: options.signal, reader: options.reader,
      query: { ...source.query, after: options.after, since: options.since?.toISOString(), last: options.last, limit: options.limit, wait: options.wait },
    });
    return { ...((await parsed(response)) as P), lag: lagOf(response.headers) };
  }

  /**
   * Opens a stream of events, with positions, after a position, or with "" at the next new event. It is not repeated. With caughtUp it has a
   * message once older events have all come, and with states it begins with the last reported states.
   */
  async openStream(source: Source, after: string, signal: AbortSignal, reader?: string, caughtUp = false, states = false): Promise<AsyncGenerator<Uint8Array>> {
    const headers: Record<string, string> = { Accept: "text/event-stream", "Cache-Control": "no-cache", ...readerHeader(reader) };
    if (after !== "") {
      headers["Last-Event-ID"] = after;
    }
    const query = { ...source.query, positions: "true", caught_up: caughtUp ? "true" : undefined, snapshot: states ? "true" : undefined };
    const response = await this.#fetchOnce({ method: "GET", path: `${source.path}/stream`, query }, signal, headers);
    if (!response.ok) {
      throw await errorOf(response);
    }
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream") || !response.body) {
      throw new ProtocolError(`an event stream of type ${response.headers.get("Content-Type")}`);
    }
    return unbroken(chunks(response.body));
  }

  async *list<T extends { id: string }>(path: string, query: Request["query"], options: Call & { limit?: number }): AsyncGenerator<T> {
    let after: string | undefined;
    for (;;) {
      const page: { data: T[]; has_more: boolean } = await this.json({
        method: "GET", path, query: { ...query, limit: options.limit, starting_after: after }, signal: options.signal,
      });
      yield* page.data;
      after = page.data.at(-1)?.id;
      if (!page.has_more || after === undefined) {
        return;
      }
    }
  }

  create<T>(path: string, body: unknown, options: SendOptions): Promise<T> {
    const idempotencyKey = options.idempotencyKey ?? newIdempotencyKey();
    return this.json({ method: "POST", path, body, idempotencyKey, signal: options.signal });
  }

  async json<T>(request: Request): Promise<T> {
    return (await parsed(await this.send(request))) as T;
  }

  /** Sends a request with retries. The answer's body has been read. */
  send(request: Request): Promise<Response> {
    return this.repeated(request, async () => {
      const signal = limitedSignal(this.#timeout + (request.held ?? 0), request.signal);
      const response = await this.#fetchOnce(request, signal, { Accept: "application/json", ...readerHeader(request.reader) });
      if (!response.ok) {
        throw await errorOf(response);
      }
      try {
        const text = await response.text();
        return new Response(text === "" ? null : text, { status: response.status, headers: response.headers });
      } catch (error) {
        throw brokenOff(error, request.signal);
      }
    });
  }

  async repeated<T>(request: Request, attempt: () => Promise<T>): Promise<T> {
    const began = Date.now();
    let lost = false;
    for (let tries = 0; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        if (request.removes && lost && error instanceof ApiError && error.type === "not_found") {
          return new Response(null, { status: 204 }) as T;
        }
        request.signal?.throwIfAborted();
        const wait = this.#waitAfter(error, request, tries);
        if (wait === undefined || Date.now() + wait - began > this.#retry.maxElapsed) {
          throw error;
        }
        lost ||= error instanceof ConnectionError || (error instanceof ApiError && error.status >= 500);
        this.onRetry({ error, wait, path: request.path });
        await sleep(wait, request.signal);
        request.signal?.throwIfAborted();
      }
    }
  }

  /** How long to wait before a request is repeated, in ms; undefined if it must not be. */
  #waitAfter(error: unknown, request: Request, tries: number): number | undefined {
    if (error instanceof ConnectionError) {
      return request.once ? undefined : this.backoff(tries);
    }
    if (error instanceof ApiError && isRepeatable(error.status)) {
      return Math.max((error.retryAfter ?? 0) * 1000, this.backoff(tries));
    }
    return undefined;
  }

  /** The wait after a number of failures: it doubles, and is randomized over its upper half. */
  backoff(tries: number): number {
    const full = Math.min(this.#retry.minBackoff * 2 ** Math.min(tries, 30), this.#retry.maxBackoff);
    return full - (Math.random() * full) / 2;
  }

  async #fetchOnce(request: Request, signal: AbortSignal, headers: Record<string, string>): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (Array.isArray(value)) {
        value.forEach((one) => query.append(name, String(one)));
      } else if (value !== undefined) {
        query.set(name, String(value));
      }
    }
    const address = this.#base + request.path + (query.size > 0 ? `?${query}` : "");
    const init: RequestInit = { method: request.method, signal, headers };
    if (this.#key !== undefined) {
      init.headers = { ...init.headers, Authorization: `Bearer ${this.#key}` };
    }
    if (request.body !== undefined) {
      init.body = JSON.stringify(request.body);
      init.headers = { ...init.headers, "Content-Type": "application/json" };
    }
    if (request.idempotencyKey !== undefined) {
      init.headers = { ...init.headers, "Idempotency-Key": request.idempotencyKey };
    }
    try {
      return await this.#fetch(address, init);
    } catch (error) {
      throw brokenOff(error, request.signal);
    }
  }
}

/** Returns the error of a request without an answer, or the reason of the caller's signal. */
function brokenOff(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) {
    return signal.reason;
  }
  if (error instanceof ApiError || error instanceof ProtocolError || error instanceof ConnectionError) {
    return error;
  }
  return new ConnectionError(`no complete answer: ${reasonOf(error)}`, { cause: error });
}

/** Returns the text of an error with that of its cause, which in Node has the reason: "fetch failed" has none. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const { cause } = error;
  if (!(cause instanceof Error)) {
    return error.message;
  }
  const code = "code" in cause ? String(cause.code) : ""; // the message is empty if several addresses were tried
  return `${error.message}: ${cause.message || code}`;
}

/** Yields the chunks of a body; its errors are those of a connection. */
async function* unbroken(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      let result: IteratorResult<Uint8Array>;
      try {
        result = await iterator.next();
      } catch (error) {
        throw brokenOff(error, undefined);
      }
      if (result.done) {
        return;
      }
      yield result.value;
    }
  } finally {
    await iterator.return?.();
  }
}

/** How far a page is behind, by its headers. */
function lagOf(headers: Headers): Lag {
  const lag: Lag = {};
  const behind = headers.get("Events-Behind");
  if (behind !== null) {
    lag.eventsBehind = Number(behind);
  }
  const expiresIn = headers.get("Events-Expire-In");
  if (expiresIn !== null) {
    lag.expiresIn = Number(expiresIn);
  }
  return lag;
}

export async function parsed(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    throw new ProtocolError(`an answer that is not JSON: ${text.slice(0, 200)}`);
  }
}

/** A random key. Browsers have randomUUID on secure pages only. */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
