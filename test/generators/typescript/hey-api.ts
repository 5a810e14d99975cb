// Runs a workflow with the client that @hey-api/openapi-ts generates.
import { client } from "./hey/client.gen";
import * as api from "./hey/sdk.gen";
import type { Error as APIError } from "./hey/types.gen";
import { check, settings } from "./settings";

client.setConfig({ baseUrl: settings.base, auth: settings.key });

function show(error: APIError | undefined) {
  check(error?.error.request_id, "got no error", error);
  console.log("error", error.error.type);
}

async function lists() {
  const sites = await api.listSites({ query: { limit: 1 } });
  check(sites.data?.data.length === 1, "sites", sites);
  const hubs = await api.listHubs();
  check(hubs.data?.data.length === 3, "hubs", hubs);
  const hub = await api.getHub({ path: { hub_id: settings.hub } });
  check(hub.data?.firmware?.version, "hub", hub);
  const devices = await api.listDevices({ path: { hub_id: settings.hub } });
  check((devices.data?.data.length ?? 0) > 1, "devices", devices);
  console.log("lists");
}

/** Sets the lamp's color and returns the position from before. */
async function command() {
  const page = await api.readEvents({ path: { hub_id: settings.hub } });
  check(page.data, "events", page);
  const sent = await api.sendCommand({
    path: { hub_id: settings.hub, device_id: settings.lamp },
    headers: { "Idempotency-Key": crypto.randomUUID() },
    body: { key: "color", value: { red: 1, green: 2, blue: 3 } },
  });
  check(sent.data?.channel.status === "pending", "command", sent);
  console.log("command");
  return page.data.next_cursor;
}

/** Streams until the lamp reports a color. */
async function follow(cursor: string) {
  const seen: string[] = [];
  const { stream } = await api.streamEvents({
    path: { hub_id: settings.hub },
    headers: { "Last-Event-ID": cursor },
    onSseEvent: (message) => seen.push(message.event ?? ""),
  });
  for await (const data of stream) {
    // The document describes a stream as text, so its messages have no type.
    const event = data as unknown as { type: string; data: { key: string; value: { red: number; blue: number } } };
    if (event?.type === "channel.observed" && event.data.key === "color") {
      check(event.data.value.red === 1 && event.data.value.blue === 3, "observed", event);
      check(seen.includes("channel.observed"), "seen", seen);
      console.log("stream");
      return;
    }
  }
  check(false, "the stream ended");
}

async function pages() {
  let after: string | undefined;
  for (let count = 0; ; count++) {
    const { data } = await api.readEvents({
      path: { hub_id: settings.hub },
      query: { limit: 1, ...(after ? { after } : {}) },
    });
    check(data, "events");
    after = data.next_cursor;
    if (!data.has_more) {
      check(count > 0, "too few pages", count);
      console.log("pages");
      return;
    }
  }
}

async function errors() {
  show((await api.createSite({ body: { name: "" } })).error);
  show((await api.listSites({ auth: "" })).error);
  show((await api.createSite({ auth: settings.narrowKey, body: { name: "x" } })).error);
  const members = await api.listMembers();
  check(members.data, "members", members);
  show((await api.removeMember({ path: { member_id: members.data.data[0]!.id } })).error);
  show((await api.getHub({ path: { hub_id: "hub-0000-0000-0000" } })).error);
  show((await api.addHub({ body: { serial: settings.unknownSerial, site_id: settings.unlinked } })).error);
  show((await api.readEvents({ path: { hub_id: settings.hub }, query: { after: settings.foreignCursor } })).error);
  const headers = { "Idempotency-Key": crypto.randomUUID() };
  await api.createSite({ headers, body: { name: "one" } });
  show((await api.createSite({ headers, body: { name: "two" } })).error);
  const lock = async (hub_id: string, device_id: number) =>
    (await api.sendCommand({ path: { hub_id, device_id }, body: { key: "lock", value: true } })).error;
  for (const device of [1, 2, 3, 4]) {
    show(await lock(settings.faultyHub, device));
  }
  show(await lock(settings.offlineHub, 1));
  for (let i = 0; i < 1000; i++) {
    const { error, response } = await api.listSites({ auth: settings.burstKey });
    if (error) {
      check(response?.headers.get("Retry-After"), "no Retry-After");
      show(error);
      return;
    }
  }
  check(false, "1000 requests were not limited");
}

async function run() {
  await lists();
  await follow(await command());
  await pages();
  await errors();
  process.exit(0);
}
void run();
