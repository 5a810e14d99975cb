import { ProtocolError } from "./errors.js";
import { Follower } from "./follow.js";
import type {
  AuditOptions, Call, ClientOptions, FeedOptions, FollowOptions, NewCommand, PageOptions, SendOptions, Sent, Snapshot, StartPosition, StateFilter, StateSnapshot,
} from "./options.js";
import { awaitOutcome, type Outcome } from "./outcome.js";
import { route } from "./route.js";
import { type AuditFilter, auditSource, feedSource, type FeedFilter, hubSource } from "./source.js";
import { newIdempotencyKey, parsed, Transport } from "./transport.js";
import type {
  AcceptedCommand, AuditPage, AuditRecord, CommandBatch, Commands, Condition, Credential, CredentialBatch, CredentialChange, CredentialList, Device, DeviceItem, DeviceLabel, Event, EventPage, FeedEvent, FeedPage, GivenRole, Hub, HubItem, Invitation, Lag,
  Member, NewCredential, PastState, Reader, SentCredentials, Site, State, Webhook, WebhookChange, WebhookDelivery, WebhookRequest, Window,
} from "./types.js";

function codes(hubId: string, deviceId: number, ...slot: number[]): string {
  return route("hubs", hubId, "devices", deviceId, "credentials", ...slot);
}

/**
 * Client calls the API of an organization. It has a method for each operation, which rejects with an `ApiError` for an error of the API,
 * a `ConnectionError` if there was no answer, and a `ProtocolError` if the answer was not the API's.
 *
 * Calls are repeated as the contract says: after 429 once Retry-After has passed; after 500, 502, 503 and 504 with backoff; and after a
 * failed connection. Commands, and requests that create something, carry an idempotency key, the same in all attempts.
 */
export class Client {
  readonly #transport: Transport;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
  }

  /** The sites, oldest first. Further pages are read as the loop needs them. Scope sites:read. */
  sites(options: Call & { limit?: number } = {}): AsyncGenerator<Site> {
    return this.#transport.list<Site>("/sites", {}, options);
  }

  /** Creates a site. Scope sites:write. */
  createSite(name: string, options: SendOptions = {}): Promise<Site> {
    return this.#transport.create("/sites", { name }, options);
  }

  site(siteId: string, options: Call = {}): Promise<Site> {
    return this.#transport.json({ method: "GET", path: route("sites", siteId), ...options });
  }

  renameSite(siteId: string, name: string, options: Call = {}): Promise<Site> {
    return this.#transport.json({ method: "PATCH", path: route("sites", siteId), body: { name }, ...options });
  }

  /** The hubs, by id. Scope hubs:read. */
  hubs(options: Call & { siteId?: string; limit?: number } = {}): AsyncGenerator<HubItem> {
    return this.#transport.list<HubItem>("/hubs", { site_id: options.siteId }, options);
  }

  /** Adds a hub to a site. Scope hubs:write. */
  addHub(serial: string, siteId: string, options: SendOptions & { name?: string } = {}): Promise<Hub> {
    return this.#transport.create("/hubs", { serial, site_id: siteId, name: options.name }, options);
  }

  hub(hubId: string, options: Call = {}): Promise<Hub> {
    return this.#transport.json({ method: "GET", path: route("hubs", hubId), ...options });
  }

  /** Renames or moves a hub; null clears its name. */
  updateHub(hubId: string, change: { name?: string | null; site_id?: string }, options: Call = {}): Promise<Hub> {
    return this.#transport.json({ method: "PATCH", path: route("hubs", hubId), body: change, ...options });
  }

  /** Revokes a hub's certificate and disconnects it. */
  async resetLink(hubId: string, options: Call = {}): Promise<void> {
    await this.#transport.send({ method: "POST", path: route("hubs", hubId, "reset-link"), once: true, ...options });
  }

  /** A hub's devices, asked of the hub, with the cursor from which to follow their changes. Scope hubs:read. */
  async devices(hubId: string, options: Call = {}): Promise<Snapshot> {
    const response = await this.#transport.send({ method: "GET", path: route("hubs", hubId, "devices"), ...options });
    const cursor = response.headers.get("Event-Cursor");
    const list = (await parsed(response)) as { data: DeviceItem[] };
    if (!cursor) {
      throw new ProtocolError("a list of devices without Event-Cursor");
    }
    return { devices: list.data, cursor };
  }

  /** The same as `devices`: what to do after a `ResyncError`, and the start of a program that keeps a hub's state. */
  resync(hubId: string, options: Call = {}): Promise<Snapshot> {
    return this.devices(hubId, options);
  }

  /**
   * What the channels of all devices last reported, also at hubs that are offline, and the position of the feed from which to follow their
   * changes: `client.feed({}, { after: position })`. Scope hubs:read.
   */
  async states(filter: StateFilter = {}, options: Call = {}): Promise<StateSnapshot> {
    const query = {
      site_id: filter.siteId, hub_id: filter.hubId, key: filter.key, value: filter.value?.toString(), status: filter.status,
      available: filter.available?.toString(), observed_before: filter.observedBefore?.toISOString(), limit: 500,
    };
    const states: State[] = [];
    let position: string | null = null;
    for (let after: string | undefined; ;) {
      const response = await this.#transport.send({ method: "GET", path: "/state", query: { ...query, starting_after: after }, ...options });
      position ??= response.headers.get("Event-Cursor");
      const page = (await parsed(response)) as { data: State[]; has_more: boolean; next_starting_after?: string };
      if (!position) {
        throw new ProtocolError("a list of states without Event-Cursor");
      }
      states.push(...page.data);
      after = page.next_starting_after ?? page.data.at(-1)?.id; // a page may have no states although more follow
      if (!page.has_more || after === undefined) {
        return { states, position };
      }
    }
  }

  /**
   * What needs attention, the most urgent first: what the portal shows. At most `limit` (100) conditions; if `has_more` is true, ask site by
   * site. Scope hubs:read.
   */
  attention(filter: { siteId?: string; hubId?: string; limit?: number } = {}, options: Call = {}): Promise<{ data: Condition[]; has_more: boolean }> {
    const query = { site_id: filter.siteId, hub_id: filter.hubId, limit: filter.limit };
    return this.#transport.json({ method: "GET", path: "/attention", query, ...options });
  }

  /** What the devices of a hub had last reported at an instant, as long ago as events are kept. Scope hubs:read. */
  async stateAt(hubId: string, at: Date, options: Call = {}): Promise<PastState> {
    const data: PastState["data"] = [];
    for (let after: string | undefined; ;) {
      const { has_more, next_starting_after, ...page }: PastState & { has_more: boolean; next_starting_after?: string } = await this.#transport.json({
        method: "GET", path: route("hubs", hubId, "state"), query: { at: at.toISOString(), starting_after: after }, ...options,
      });
      data.push(...page.data);
      after = next_starting_after;
      if (!has_more || after === undefined) {
        return { ...page, data };
      }
    }
  }

  device(hubId: string, deviceId: number, options: Call = {}): Promise<Device> {
    return this.#transport.json({ method: "GET", path: route("hubs", hubId, "devices", deviceId), ...options });
  }

  /** Sets the name or room of a device; null clears. */
  updateDevice(hubId: string, deviceId: number, change: { name?: string | null; room?: string | null }, options: Call = {}): Promise<DeviceLabel> {
    return this.#transport.json({ method: "PATCH", path: route("hubs", hubId, "devices", deviceId), body: change, ...options });
  }

  /** Forgets a device that the hub cannot reach any more. */
  async forgetDevice(hubId: string, deviceId: number, options: Call = {}): Promise<void> {
    await this.#transport.send({ method: "DELETE", path: route("hubs", hubId, "devices", deviceId), removes: true, ...options });
  }

  /** Opens the window in which one device can join. */
  openPairing(hubId: string, options: Call & { setupCode?: string } = {}): Promise<Window> {
    const body = options.setupCode === undefined ? undefined : { setup_code: options.setupCode };
    return this.#transport.json({ method: "POST", path: route("hubs", hubId, "pairing"), body, signal: options.signal });
  }

  async closePairing(hubId: string, options: Call = {}): Promise<void> {
    await this.#transport.send({ method: "DELETE", path: route("hubs", hubId, "pairing"), ...options });
  }

  /** Opens the window in which devices can leave. */
  openRemoval(hubId: string, options: Call = {}): Promise<Window> {
    return this.#transport.json({ method: "POST", path: route("hubs", hubId, "removal"), ...options });
  }

  async closeRemoval(hubId: string, options: Call = {}): Promise<void> {
    await this.#transport.send({ method: "DELETE", path: route("hubs", hubId, "removal"), ...options });
  }

  /**
   * Sends a command and resolves once the hub has accepted it; the outcome follows later. It is repeated under the same idempotency key,
   * so that the hub runs it once. After a ConnectionError or hub_timeout the hub may have run it all the same: sending it again with the
   * same key shows whether it did. Scope hubs:command.
   */
  async send(hubId: string, deviceId: number, command: NewCommand, options: SendOptions = {}): Promise<Sent> {
    const idempotencyKey = options.idempotencyKey ?? newIdempotencyKey();
    const accepted: AcceptedCommand = await this.#transport.json({
      method: "POST", path: route("hubs", hubId, "devices", deviceId, "commands"), body: command, idempotencyKey, signal: options.signal,
    });
    return { ...accepted, idempotencyKey };
  }

  /** Sets up to 500 channels, with an outcome for each; `commands` tells what becomes of them. It is repeated as `send`. Scope hubs:command. */
  sendAll(batch: CommandBatch, options: SendOptions = {}): Promise<Commands> {
    const idempotencyKey = options.idempotencyKey ?? newIdempotencyKey();
    return this.#transport.json({ method: "POST", path: route("commands"), body: batch, idempotencyKey, signal: options.signal });
  }

  /** Commands with their present statuses, by the id of `sendAll` or of one of its items. Scope hubs:command. */
  commands(id: string, options: Call = {}): Promise<Commands> {
    return this.#transport.json({ method: "GET", path: route("commands", id), ...options });
  }

  /**
   * Sends a command and waits for its outcome, at most for `limit` ms (30,000 by default), after which the outcome is "pending": not known.
   * What the device reported before the command does not count. Scopes hubs:command and events:read, and hubs:read to see failures.
   */
  async sendAndWait(hubId: string, deviceId: number, command: NewCommand, options: SendOptions & { limit?: number } = {}): Promise<{ sent: Sent; outcome: Outcome }> {
    const after = await this.position(hubId, options);
    const sent = await this.send(hubId, deviceId, command, options);
    const outcome = await awaitOutcome(this, sent, after, options.limit ?? 30_000, options.signal);
    return { sent, outcome };
  }

  /** The cursor of the newest event of a hub's log: events after the call are after it. Scope events:read. */
  position(hubId: string, options: Call = {}): Promise<string> {
    return this.#transport.positionOf(hubSource(hubId), options);
  }

  /** The newest position of the organization's feed: events after the call are after it. Scope events:read. */
  feedPosition(options: Call = {}): Promise<string> {
    return this.#transport.positionOf(feedSource({}), options);
  }

  /** One page of a hub's events, and how far it is behind. `wait` is in seconds. Scope events:read. */
  events(hubId: string, options: PageOptions = {}): Promise<EventPage & { lag: Lag }> {
    return this.#transport.pageOf(hubSource(hubId), options);
  }

  /** One page of the events of all hubs of the organization, and how far it is behind. `wait` is in seconds. Scope events:read. */
  feedPage(filter: FeedFilter = {}, options: PageOptions = {}): Promise<FeedPage & { lag: Lag }> {
    return this.#transport.pageOf(feedSource(filter), options);
  }

  /** The readers of events that name themselves, by name, and how far they are behind. Scope events:read. */
  readers(options: Call & { limit?: number } = {}): AsyncGenerator<Reader> {
    return this.#transport.list<Reader>("/readers", {}, options);
  }

  /** The codes of a lock, without the codes themselves. Scope credentials:read. */
  credentials(hubId: string, deviceId: number, options: Call = {}): Promise<CredentialList> {
    return this.#transport.json({ method: "GET", path: codes(hubId, deviceId), ...options });
  }

  credential(hubId: string, deviceId: number, slot: number, options: Call = {}): Promise<Credential> {
    return this.#transport.json({ method: "GET", path: codes(hubId, deviceId, slot), ...options });
  }

  /** Gives a lock a code, whose `code` only this answer has. Scope credentials:write. */
  createCredential(hubId: string, deviceId: number, credential: NewCredential, options: SendOptions = {}): Promise<Credential> {
    return this.#transport.create(codes(hubId, deviceId), credential, options);
  }

  /** Gives several locks one code. Scope credentials:write. */
  createCredentials(batch: CredentialBatch, options: SendOptions = {}): Promise<SentCredentials> {
    return this.#transport.create("/credentials", batch, options);
  }

  /** Changes a code of a lock; what is absent stays. Scope credentials:write. */
  updateCredential(hubId: string, deviceId: number, slot: number, change: CredentialChange, options: Call = {}): Promise<Credential> {
    return this.#transport.json({ method: "PATCH", path: codes(hubId, deviceId, slot), body: change, ...options });
  }

  async revokeCredential(hubId: string, deviceId: number, slot: number, options: Call = {}): Promise<void> {
    await this.#transport.send({ method: "DELETE", path: codes(hubId, deviceId, slot), removes: true, ...options });
  }

  /** The webhooks, oldest first. Scope webhooks:read. */
  webhooks(options: Call & { limit?: number } = {}): AsyncGenerator<Webhook> {
    return this.#transport.list<Webhook>("/webhooks", {}, options);
  }

  /** Creates a webhook, whose `secret` only this answer has. Scope webhooks:write. */
  createWebhook(webhook: WebhookRequest, options: SendOptions = {}): Promise<Webhook> {
    return this.#transport.create("/webhooks", webhook, options);
  }

  webhook(webhookId: string, options: Call = {}): Promise<Webhook> {
    return this.#transport.json({ method: "GET", path: route("webhooks", webhookId), ...options });
  }

  /** Changes a webhook; what is absent stays. `enabled: true` makes one that was disabled go on from its position. */
  updateWebhook(webhookId: string, change: WebhookChange, options: Call = {}): Promise<Webhook> {
    return this.#transport.json({ method: "PATCH", path: route("webhooks", webhookId), body: change, ...options });
  }

  async deleteWebhook(webhookId: string, options: Call = {}): Promise<void> {
    await this.#transport.send({ method: "DELETE", path: route("webhooks", webhookId), removes: true, ...options });
  }

  /** The last requests to a webhook, newest first. Scope webhooks:read. */
  async webhookDeliveries(webhookId: string, options: Call = {}): Promise<WebhookDelivery[]> {
    const page: { data: WebhookDelivery[] } = await this.#transport.json({ method: "GET", path: route("webhooks", webhookId, "deliveries"), ...options });
    return page.data;
  }

  /** Posts a test event, and resolves with what became of it. */
  testWebhook(webhookId: string, options: Call = {}): Promise<WebhookDelivery> {
    return this.#transport.json({ method: "POST", path: route("webhooks", webhookId, "test"), once: true, ...options });
  }

  /** Makes a webhook go on after a position of the feed, or with what was stored since a time. */
  replayWebhook(webhookId: string, from: { after: string } | { since: Date }, options: Call = {}): Promise<Webhook> {
    return this.#transport.json({ method: "POST", path: route("webhooks", webhookId, "replay"), body: from, once: true, ...options });
  }

  /** Replaces the secret of a webhook; the answer has the new one. The former one is used for a day, or for `overlap` seconds. */
  rotateWebhookSecret(webhookId: string, options: Call & { overlap?: number } = {}): Promise<Webhook> {
    const body = { overlap_seconds: options.overlap };
    return this.#transport.json({ method: "POST", path: route("webhooks", webhookId, "rotate-secret"), body, once: true, signal: options.signal });
  }

  /**
   * Yields a hub's events after a position, in order, and continues with new ones until the loop is left or the signal aborts. It
   * reconnects and resumes by itself; no event is yielded twice. First process an event, then store its cursor: a program that starts
   * again with the stored cursor misses nothing.
   *
   * `hub.events_skipped` and `hub.log_reset` among the events mark a gap (`isGap`): read the devices again. It rejects with a `ResyncError`
   * if the cursor has expired, unless `onResync` is given. Scope events:read.
   */
  follow(hubId: string, from: StartPosition, options: FollowOptions = {}): AsyncGenerator<Event, void, undefined> {
    return new Follower(this.#transport, (hub, call) => this.resync(hub, call), hubSource(hubId), from, options).run();
  }

  /**
   * Yields the events of all hubs of the organization after a position, as `follow` does for one hub. Each hub's events are in the order of
   * its log; there is no order across hubs. Store the `position` of a processed event to resume after it; an event without one is not the
   * last of its page. `feed.gap` among the events says that events of that hub are gone for this reader (`isFeedGap`). It rejects with a
   * `ResyncError` once the position as a whole is older than the service keeps events. Scope events:read.
   */
  feed(filter: FeedFilter, from: StartPosition, options: FeedOptions = {}): AsyncGenerator<FeedEvent, void, undefined> {
    return new Follower(this.#transport, (hub, call) => this.resync(hub, call), feedSource(filter), from, options).run();
  }

  /** One page of the organization's audit log, the oldest records first. `wait` is in seconds. Scope audit:read. */
  auditPage(filter: AuditFilter & { until?: Date } = {}, options: Omit<PageOptions, "reader"> = {}): Promise<AuditPage> {
    const source = auditSource(filter);
    source.query["until"] = filter.until?.toISOString();
    return this.#transport.pageOf(source, options);
  }

  /**
   * Yields the records of the organization's audit log after a position, as `follow` does the events of a hub: store the `cursor` of a
   * processed record to resume after it. Scope audit:read.
   */
  audit(filter: AuditFilter, from: StartPosition, options: AuditOptions = {}): AsyncGenerator<AuditRecord, void, undefined> {
    const records = new Follower(this.#transport, (hub, call) => this.resync(hub, call), auditSource(filter), from, options).run();
    return records as unknown as AsyncGenerator<AuditRecord, void, undefined>;
  }

  members(options: Call & { limit?: number } = {}): AsyncGenerator<Member> {
    return this.#transport.list<Member>("/members", {}, options);
  }

  member(memberId: string, options: Call = {}): Promise<Member> {
    return this.#transport.json({ method: "GET", path: route("members", memberId), ...options });
  }

  changeRole(memberId: string, role: GivenRole, options: Call = {}): Promise<Member> {
    return this.#transport.json({ method: "PATCH", path: route("members", memberId), body: { role }, ...options });
  }

  async removeMember(memberId: string, options: Call = {}): Promise<void> {
    await this.#transport.send({ method: "DELETE", path: route("members", memberId), removes: true, ...options });
  }

  invitations(options: Call & { limit?: number } = {}): AsyncGenerator<Invitation> {
    return this.#transport.list<Invitation>("/invitations", {}, options);
  }

  invite(email: string, options: SendOptions & { role?: GivenRole } = {}): Promise<Invitation> {
    return this.#transport.create("/invitations", { email, role: options.role }, options);
  }

  async revokeInvitation(invitationId: string, options: Call = {}): Promise<void> {
    await this.#transport.send({ method: "DELETE", path: route("invitations", invitationId), removes: true, ...options });
  }
}
