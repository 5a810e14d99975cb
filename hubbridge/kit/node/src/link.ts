import mqtt, { type MqttClient } from "mqtt";
import { setTimeout as sleep } from "node:timers/promises";
import { certificateRequest, newKey } from "./csr.js";
import type { Store } from "./store.js";

const [BATCH, WINDOW, MESSAGE] = [500, 2000, 250_000]; // events, events, bytes: R-events-1, 2, 4
const ACK_WAIT = 5000, HOUR = 3_600_000, DAY = 24 * HOUR; // ms

interface Identity {
  hub_id: string; certificate: string; ca: string; broker: string; expires_at: string; key: string;
}

export interface LinkOptions {
  url: string; serial: string; secret: string;
  hello: () => object;
  clockTrusted: () => boolean;
  /** Answers a request: an object with `result` or `error`. */
  answer: (method: string, params: Record<string, unknown>) => Promise<object>;
  log: (line: string) => void;
}

/** An answer of the enrolment that is not 201. */
class EnrolmentError extends Error {
  constructor(readonly status: number, readonly retryAfter: number, message: string) {
    super(message);
  }
}

/** Link keeps the connection to the cloud and sends the store's events over it. */
export class Link {
  private readonly stopping = new AbortController();
  private client: MqttClient | undefined;
  private topic = "";
  // The state of one connection: reset by begin.
  private ready = false; // both subscriptions are granted
  private introduced = false; // an ack has answered a hello of this connection
  private helloPending = false;
  private helloAt = 0;
  private acked = 0;
  private sent = 0;
  private resendAt = 0;
  private rewoundAt = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly store: Store, private readonly options: LinkOptions) {}

  get connected(): boolean {
    return this.introduced;
  }

  /** Enrols and connects, again and again, until stop. Rejects if the secret is wrong. */
  async run(): Promise<void> {
    let failures = 0, refusals = 0, untrusted = 0, enrolAfter = 0, renewAfter = 0, trustAfter = 0;
    while (!this.stopping.signal.aborted) {
      const begun = performance.now();
      let wait = 1000;
      try {
        const distrusts = untrusted >= 3 && begun >= trustAfter; // R-enrol-7
        if (!this.identity || distrusts || this.expiresSoon() && begun >= renewAfter ||
            refusals > 0 && begun >= enrolAfter) { // R-enrol-4, R-enrol-5
          [refusals, untrusted, renewAfter, enrolAfter] = [0, 0, begun + HOUR, begun + 6 * HOUR];
          await this.enrol();
          [renewAfter, trustAfter] = [0, distrusts ? begun + HOUR : trustAfter];
        }
        const end = await this.connect();
        refusals = end === "refused" ? refusals + 1 : 0;
        untrusted = end === "untrusted" && this.options.clockTrusted() ? untrusted + 1 : 0;
        if (performance.now() > begun + 10_000) failures = 0;
      } catch (error) {
        if (this.stopping.signal.aborted) break;
        this.options.log(`not connected: ${(error as Error).message}`);
        if (error instanceof EnrolmentError) {
          if (!this.identity && [400, 401].includes(error.status)) throw error;
          wait = Math.max(wait, error.retryAfter * 1000); // R-enrol-6
        }
      }
      failures++;
      const backoff = Math.min(30_000, 500 * 2 ** Math.min(failures, 6)) * (1 + Math.random() / 2);
      await sleep(Math.max(wait, backoff), undefined, { signal: this.stopping.signal }).catch(() => undefined);
    }
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.client?.endAsync().catch(() => undefined);
  }

  private get identity(): Identity | undefined {
    return this.store.get("identity") as Identity | undefined;
  }

  private expiresSoon(): boolean {
    return Date.parse(this.identity?.expires_at ?? "") - Date.now() < 30 * DAY;
  }

  private async enrol(): Promise<void> {
    const key = newKey();
    const response = await fetch(`${this.options.url.replace(/\/+$/, "")}/link/v1/certificates`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        serial: this.options.serial, secret: this.options.secret, csr: certificateRequest(key),
      }),
      signal: AbortSignal.any([this.stopping.signal, AbortSignal.timeout(30_000)]),
    }).catch((error: Error) => {
      throw new Error(`enrolment at ${this.options.url}: ${String(error.cause ?? error.message)}`);
    });
    const text = await response.text();
    if (response.status !== 201) {
      const seconds = Number(response.headers.get("Retry-After") ?? 0);
      throw new EnrolmentError(response.status, seconds || 0, `enrolment: ${response.status} ${text.slice(0, 300)}`);
    }
    const identity: Identity = { ...JSON.parse(text), key };
    await this.store.change({ identity }); // R-enrol-3
    this.options.log(`enrolled as ${identity.hub_id} until ${identity.expires_at}`);
  }

  /** Serves one connection until it ends. */
  private async connect(): Promise<"refused" | "untrusted" | "ended"> {
    const { hub_id, certificate, ca, broker, key } = this.identity!;
    this.topic = `hub/${hub_id}/`;
    const client = mqtt.connect(broker, {
      clientId: hub_id, protocolVersion: 4, clean: true, keepalive: 30, reconnectPeriod: 0,
      connectTimeout: 15_000, queueQoSZero: false, resubscribe: false,
      ca, cert: certificate, key, rejectUnauthorized: true, // R-connect-1: trusts this authority only
    });
    this.client = client;
    let end: "refused" | "untrusted" | "ended" = "ended", cause = "";
    const closed = new Promise<void>((done) => client.once("close", done));
    client.on("error", (error: Error & { code?: number | string }) => {
      const code = String(error.code ?? "");
      if (typeof error.code === "number" || /^ERR_SSL/.test(code)) end = "refused";
      else if (/CERT|ISSUER|SIGNATURE|CRL/.test(code)) end = "untrusted";
      cause = `${code} ${error.message}`;
      client.end(true);
    });
    client.on("message", (topic, payload) => this.received(topic, payload.toString()));
    client.once("connect", () => {
      client.subscribe([`${this.topic}ack`, `${this.topic}request`], { qos: 0 }, (error, granted) => {
        if (error || granted?.some((each) => each.qos > 2)) client.end(true);
        else this.begin();
      });
    });
    const renewal = setInterval(() => this.expiresSoon() && this.options.clockTrusted() && client.end(), HOUR);
    if (this.stopping.signal.aborted) client.end(true);
    await closed;
    clearInterval(renewal);
    clearTimeout(this.timer);
    if (this.introduced || cause) this.options.log(`connection ended${cause && `: ${cause}`}`);
    this.ready = this.introduced = false;
    this.client = undefined;
    client.end(true);
    return end;
  }

  private publish(suffix: string, payload: string): void {
    if (this.client?.connected) this.client.publish(this.topic + suffix, payload, { qos: 0 });
  }

  private begin(): void {
    [this.ready, this.introduced, this.helloPending] = [true, false, true]; // R-hello-1, R-hello-5
    this.helloAt = -ACK_WAIT;
    this.acked = this.sent = this.resendAt = 0;
    this.rewoundAt = -ACK_WAIT;
    this.work();
  }

  /** Sends what there is to send, and sets the timer for what may be due later. */
  work(): void {
    clearTimeout(this.timer);
    if (!this.ready) return;
    const now = performance.now(), due = this.send(now);
    if (due < Infinity) this.timer = setTimeout(() => this.work(), Math.max(1, due - now));
  }

  /** Returns when to send again. */
  private send(now: number): number {
    const { oldest, durable } = this.store;
    if (this.helloPending || this.acked + 1 < oldest) { // events were dropped: R-hello-6, R-ack-4
      const again = this.helloAt + (this.helloPending ? ACK_WAIT : 1000); // R-hello-4
      if (now < again) return again;
      [this.helloAt, this.helloPending] = [now, true];
      this.publish("hello", JSON.stringify({
        protocol: 1, log: this.store.log, oldest, newest: Math.max(durable, oldest - 1), clock_trusted: this.options.clockTrusted(),
        ...this.options.hello(),
      }));
      return now + ACK_WAIT;
    }
    if (this.sent > this.acked && now >= this.resendAt) { // R-events-5
      [this.sent, this.rewoundAt] = [this.acked, now];
    }
    for (;;) {
      const room = Math.min(WINDOW - (this.sent - this.acked), BATCH); // R-events-4
      const events = room > 0 ? this.store.read(this.sent + 1, room, MESSAGE) : [];
      if (events.length === 0) return this.sent > this.acked ? this.resendAt : Infinity;
      if (this.sent === this.acked) this.resendAt = now + ACK_WAIT;
      this.sent += events.length;
      this.publish("events", `{"log":"${this.store.log}","events":[${events.map((event) => event.text).join()}]}`);
    }
  }

  private received(topic: string, payload: string): void {
    try {
      const message = JSON.parse(payload);
      if (topic.endsWith("/request")) void this.request(message);
      else if (message.log === this.store.log && Number.isSafeInteger(message.through)) { // R-ack-3
        this.ack(message.through);
      }
    } catch (error) {
      this.options.log(`message ignored: ${(error as Error).message}`);
    }
  }

  private ack(through: number): void {
    if (!this.ready || this.introduced && through < this.acked) return; // R-ack-2
    const now = performance.now();
    this.resendAt = now + ACK_WAIT;
    if (this.helloPending) {
      if (!this.introduced) this.options.log(`connected as ${this.identity?.hub_id}`);
      [this.helloPending, this.introduced, this.acked, this.sent] = [false, true, through, through];
    } else if (through > this.acked) { // R-ack-1
      [this.acked, this.sent] = [through, Math.max(this.sent, through)];
    } else if (this.sent > this.acked) { // R-events-6: each message on its way repeats the ack, so once a second
      this.resendAt = Math.max(now, this.rewoundAt + 1000);
    }
    void this.store.acked(through);
    this.work();
  }

  private async request(message: { id: string; token: string; method: string; params?: Record<string, unknown> }): Promise<void> {
    const { id, token, method, params } = message;
    const answer = await this.options.answer(method, params ?? {});
    await this.store.synced(); // R-list-2: a number that an answer names is on disk
    this.publish(`response/${token}`, JSON.stringify({ id, ...answer })); // R-request-1, R-request-2
  }
}
