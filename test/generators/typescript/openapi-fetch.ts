// Runs a workflow with the types that openapi-typescript generates, through openapi-fetch.
import createClient from "openapi-fetch";
import type { components, paths } from "./api";
import { check, settings } from "./settings";

type Event = components["schemas"]["Event"];

function clientWith(key: string) {
  const headers: Record<string, string> = key ? { Authorization: `Bearer ${key}` } : {};
  return createClient<paths>({ baseUrl: settings.base, headers });
}

const client = clientWith(settings.key);

function show(error: components["schemas"]["Error"] | undefined) {
  check(error?.error.request_id, "got no error", error);
  console.log("error", error.error.type);
}

async function lists() {
  const sites = await client.GET("/sites", { params: { query: { limit: 1 } } });
  check(sites.data?.data.length === 1, "sites", sites);
  const hubs = await client.GET("/hubs");
  check(hubs.data?.data.length === 3, "hubs", hubs);
  const hub = await client.GET("/hubs/{hub_id}", { params: { path: { hub_id: settings.hub } } });
  check(hub.data?.firmware?.version, "hub", hub);
  const devices = await client.GET("/hubs/{hub_id}/devices", { params: { path: { hub_id: settings.hub } } });
  check((devices.data?.data.length ?? 0) > 1, "devices", devices);
  console.log("lists");
}

/** Sets the lamp's color and returns the position from before. */
async function command() {
  const page = await client.GET("/hubs/{hub_id}/events", { params: { path: { hub_id: settings.hub } } });
  check(page.data, "events", page);
  const sent = await client.POST("/hubs/{hub_id}/devices/{device_id}/commands", {
    params: {
      path: { hub_id: settings.hub, device_id: settings.lamp },
      header: { "Idempotency-Key": crypto.randomUUID() },
    },
    body: { key: "color", value: { red: 20, green: 160, blue: 255 } },
  });
  check(sent.data?.channel.status === "pending", "command", sent);
  console.log("command");
  return page.data.next_cursor;
}

/** Streams until the lamp reports a color. */
async function follow(cursor: string) {
  const { data } = await client.GET("/hubs/{hub_id}/events/stream", {
    params: { path: { hub_id: settings.hub }, header: { "Last-Event-ID": cursor } },
    parseAs: "stream",
  });
  check(data, "stream");
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of data as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      if (!line.startsWith("data: ")) {
        continue;
      }
      const event: Event = JSON.parse(line.slice("data: ".length));
      if (event.type === "channel.observed" && event.data.key === "color") {
        const value = event.data.value as components["schemas"]["Color"];
        check(value.red === 20 && value.blue === 255, "observed", event);
        console.log("stream");
        return;
      }
    }
  }
  check(false, "the stream ended");
}

async function pages() {
  let after: string | undefined;
  for (let count = 0; ; count++) {
    const { data } = await client.GET("/hubs/{hub_id}/events", {
      params: { path: { hub_id: settings.hub }, query: { limit: 1, ...(after ? { after } : {}) } },
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
  show((await client.POST("/sites", { body: { name: "" } })).error);
  show((await clientWith("").GET("/sites")).error);
  show((await clientWith(settings.narrowKey).POST("/sites", { body: { name: "x" } })).error);
  const members = await client.GET("/members");
  check(members.data, "members", members);
  show((await client.DELETE("/members/{member_id}", { params: { path: { member_id: members.data.data[0]!.id } } })).error);
  show((await client.GET("/hubs/{hub_id}", { params: { path: { hub_id: "hub-0000-0000-0000" } } })).error);
  show((await client.POST("/hubs", { body: { serial: settings.unknownSerial, site_id: settings.unlinked } })).error);
  show(
    (
      await client.GET("/hubs/{hub_id}/events", {
        params: { path: { hub_id: settings.hub }, query: { after: settings.foreignCursor } },
      })
    ).error,
  );
  const header = { "Idempotency-Key": crypto.randomUUID() };
  await client.POST("/sites", { params: { header }, body: { name: "one" } });
  show((await client.POST("/sites", { params: { header }, body: { name: "two" } })).error);
  const lock = async (hub_id: string, device_id: number) =>
    (
      await client.POST("/hubs/{hub_id}/devices/{device_id}/commands", {
        params: { path: { hub_id, device_id } },
        body: { key: "lock", value: true },
      })
    ).error;
  for (const device of [1, 2, 3, 4]) {
    show(await lock(settings.faultyHub, device));
  }
  show(await lock(settings.offlineHub, 1));
  const burst = clientWith(settings.burstKey);
  for (let i = 0; i < 1000; i++) {
    const { error, response } = await burst.GET("/sites");
    if (error) {
      check(response.headers.get("Retry-After"), "no Retry-After");
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
