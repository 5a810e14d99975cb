import mqtt, { type MqttClient } from "mqtt";
import { networkInterfaces } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { certificateRequest } from "./csr.js";
import type { Store } from "./store.js";
import type { HubOptions } from "./types.js";

const [BATCH, WINDOW, MESSAGE] = [500, 2000, 250_000]; // events, events, bytes: R-events-1, 2, 4
const ACK_WAIT = 5000, HOUR = 3_600_000, DAY = 24 * HOUR; // ms
/** Why to enrol, and how long to wait before the next try for the same reason: R-enrol-4, 5 and 7. */
const PAUSES = { missing: 0, expires: HOUR, untrusted: HOUR, refused: 6 * HOUR };

interface Identity { hub_id: string; certificate: string; ca: string; broker: string; expires_at: string; key: string }

/** Returns the state of a new connection. */
const begin = () => ({
  helloPending: true, introduced: false, helloAt: -Infinity, acked: 0, sent: 0, resendAt: 0, rewoundAt: -Infinity,
});

/** Link keeps the connection to the cloud and sends the store's events over it. */
export abstract class Link {
  private readonly stopping = new AbortController();
  private client: MqttClient | undefined;
  private session: ReturnType<typeof begin> | undefined; // from when both subscriptions are granted

  protected constructor(protected readonly options: HubOptions, protected readonly store: Store) {}

  /** Answers a request: an object with `result` or `error`. */
  protected abstract answer(method: string, params: Record<string, unknown>): Promise<object>;

  /** Reports whether the hub sets codes of locks. */
  protected abstract get setsCodes(): boolean;

  get connected(): boolean {
    return this.session?.introduced ?? false;
  }

  protected get clockTrusted(): boolean {
    return this.options.clockTrusted?.() ?? Date.now() > Date.parse("2026-01-01");
  }

  protected log(line: string): void {
    if (this.options.log) this.options.log(line);
    else console.error(`${new Date().toISOString()} ${line}`);
  }

  /** Stays connected until close. Rejects if the cloud does not know the serial and secret. */
  async run(): Promise<void> {
    const count = { failures: 0, refused: 0, untrusted: 0 };
    const after = { missing: 0, expires: 0, untrusted: 0, refused: 0 };
    while (!this.stopping.signal.aborted) {
      const begun = performance.now();
      let wait = 1000;
      try {
        const reason = !this.identity ? "missing" : this.expiresSoon() ? "expires"
          : count.untrusted >= 3 ? "untrusted" : count.refused > 0 ? "refused" : undefined;
        if (reason && begun >= after[reason]) {
          after[reason] = begun + PAUSES[reason];
          await this.enrol();
          [after.expires, count.refused, count.untrusted] = [0, 0, 0];
        }
        const end = await this.connect();
        count.refused = end === "refused" ? count.refused + 1 : 0;
        count.untrusted = end === "untrusted" && this.clockTrusted ? count.untrusted + 1 : 0;
        if (performance.now() > begun + 10_000) count.failures = 0;
      } catch (error) {
        if (this.stopping.signal.aborted) break;
        const { message, cause } = error as Error;
        this.log(`not connected: ${message}`);
        if (cause instanceof Response) {
          if (!this.identity && [400, 401].includes(cause.status)) throw error;
          wait = Number(cause.headers.get("Retry-After") ?? 1) * 1000; // R-enrol-6
        }
      }
      const backoff = Math.min(30_000, 1000 * 2 ** Math.min(count.failures++, 5)) * (1 + Math.random() / 2); // R-connect-8
      await sleep(Math.max(wait, backoff), undefined, { signal: this.stopping.signal }).catch(() => undefined);
    }
  }

  /** Disconnects, writes what is to be written and lets go of the folder. */
  async close(): Promise<void> {
    this.stopping.abort();
    await this.client?.endAsync().catch(() => undefined);
    await this.store.close();
  }

  private get identity(): Identity | undefined {
    return this.store.get("identity") as Identity | undefined;
  }

  private expiresSoon(): boolean {
    return this.clockTrusted && Date.parse(this.identity?.expires_at ?? "") - Date.now() < 30 * DAY;
  }

  private async enrol(): Promise<void> {
    const { url, serial, secret } = this.options, { key, csr } = await certificateRequest();
    const response = await fetch(`${url.replace(/\/+$/, "")}/link/v1/certificates`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ serial, secret, csr }),
      signal: AbortSignal.any([this.stopping.signal, AbortSignal.timeout(30_000)]),
    }).catch((error: Error) => {
      throw new Error(`enrolment at ${url}: ${String(error.cause ?? error.message)}`);
    });
    const text = await response.text();
    if (response.status !== 201) throw new Error(`enrolment: ${response.status} ${text.slice(0, 300)}`, { cause: response });
    const identity: Identity = { ...JSON.parse(text), key };
    await this.store.change({ identity }); // R-enrol-3
    this.log(`enrolled as ${identity.hub_id} until ${identity.expires_at}`);
  }

  /** Serves one connection until it ends. */
  private async connect(): Promise<"refused" | "untrusted" | "ended"> {
    const { hub_id: clientId, certificate, ca, broker, key } = this.identity!;
    const client = mqtt.connect(broker, {
      clientId, protocolVersion: 4, clean: true, keepalive: 30, reconnectPeriod: 0, connectTimeout: 15_000,
      queueQoSZero: false, ca, cert: certificate, key, rejectUnauthorized: true, // R-connect-1: trusts this authority only
    });
    this.client = client;
    let end: "refused" | "untrusted" | "ended" = "ended", cause = "";
    client.on("error", (error: Error & { code?: number | string }) => {
      const code = String(error.code ?? "");
      if (typeof error.code === "number" || /^ERR_SSL/.test(code)) end = "refused";
      else if (/CERT|ISSUER|SIGNATURE|CRL/.test(code)) end = "untrusted";
      cause = `: ${code} ${error.message}`;
      client.end(true);
    });
    client.on("message", (topic, payload) => this.received(topic, payload.toString()));
    client.once("connect", () => {
      client.subscribe([this.topic("ack"), this.topic("request")], { qos: 0 }, (error, granted) => {
        if (error || granted?.some((each) => each.qos > 2)) client.end(true);
        else this.session = begin(); // R-hello-1
        this.work();
      });
    });
    const timer = setInterval(() => this.work(), 200);
    const renewal = setInterval(() => { if (this.expiresSoon()) client.end(); }, HOUR);
    if (this.stopping.signal.aborted) client.end(true);
    await new Promise<void>((done) => client.once("close", done));
    clearInterval(timer);
    clearInterval(renewal);
    if (this.connected || cause) this.log(`connection ended${cause}`);
    this.client = this.session = undefined;
    client.end(true);
    return end;
  }

  private topic(name: string): string {
    return `hub/${this.identity?.hub_id}/${name}`;
  }

  private publish(name: string, payload: string): void {
    if (this.client?.connected) this.client.publish(this.topic(name), payload, { qos: 0 });
  }

  /** Sends what there is to send. */
  protected work(): void {
    const { session, store } = this, now = performance.now();
    if (!session) return;
    if (session.helloPending || session.acked + 1 < store.oldest) { // R-hello-5; events were dropped: R-hello-6, R-ack-4
      if (now < session.helloAt + (session.helloPending ? ACK_WAIT : 1000)) return; // R-hello-4
      [session.helloAt, session.helloPending] = [now, true];
      const { log, oldest, durable } = store, { firmware: version, network = systemNetwork } = this.options;
      return this.publish("hello", JSON.stringify({
        protocol: 1, log, oldest, newest: Math.max(durable, oldest - 1), clock_trusted: this.clockTrusted,
        firmware: { version }, network: network(), ...this.setsCodes && { credentials: 1 },
      }));
    }
    if (session.sent > session.acked && now >= session.resendAt) { // R-events-5
      [session.sent, session.rewoundAt] = [session.acked, now];
    }
    for (;;) {
      const room = Math.min(WINDOW - (session.sent - session.acked), BATCH); // R-events-4
      const events = store.read(session.sent + 1, room, MESSAGE);
      if (events.length === 0) return;
      if (session.sent === session.acked) session.resendAt = now + ACK_WAIT;
      session.sent += events.length;
      this.publish("events", `{"log":"${store.log}","events":[${events.map((event) => event.text).join()}]}`);
    }
  }

  private received(topic: string, payload: string): void {
    try {
      const message = JSON.parse(payload);
      if (topic.endsWith("/request")) void this.request(message);
      else if (message.log === this.store.log && Number.isSafeInteger(message.through)) this.ack(message.through); // R-ack-3
    } catch (error) {
      this.log(`message ignored: ${(error as Error).message}`);
    }
  }

  private ack(through: number): void {
    const session = this.session, now = performance.now();
    if (!session || session.introduced && through < session.acked) return; // R-ack-2
    session.resendAt = now + ACK_WAIT;
    if (session.helloPending) {
      if (!session.introduced) this.log(`connected as ${this.identity?.hub_id}`);
      Object.assign(session, { helloPending: false, introduced: true, acked: through, sent: through });
    } else if (through > session.acked) { // R-ack-1
      [session.acked, session.sent] = [through, Math.max(session.sent, through)];
    } else { // R-events-6: each message on its way repeats the ack, so once a second
      session.resendAt = Math.max(now, session.rewoundAt + 1000);
    }
    void this.store.acked(through);
    this.work();
  }

  private async request(message: { id: string; token: string; method: string; params?: Record<string, unknown> }): Promise<void> {
    const answer = await this.answer(message.method, message.params ?? {});
    await this.store.synced(); // R-list-2: a number that an answer names is on disk
    this.publish(`response/${message.token}`, JSON.stringify({ id: message.id, ...answer })); // R-request-1, 2
  }
}

/** Returns what the system says about its first interface. */
function systemNetwork(): object {
  const [name, list = []] = Object.entries(networkInterfaces()).find(([, each]) => each?.some(({ internal }) => !internal)) ?? ["lo"];
  const address = (family: string) => list.find((each) => each.family === family)?.address ?? null;
  return {
    type: /^wl/.test(name) ? "wifi" : /^ww/.test(name) ? "cellular" : "ethernet", interface: name,
    ip_address: address("IPv4"), ipv6_address: address("IPv6"), mac_address: list[0]?.mac ?? null,
    ssid: null, signal_dbm: null, carrier: null, radio: null, metered: false,
  };
}
