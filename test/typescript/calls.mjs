// Calls the operations of the API and prints a line for each result that the test checks.
import { ApiError, Client } from "hubcloud-client";

const { base, key, hub, offline, site } = JSON.parse(process.argv[2]);
const client = new Client({ baseUrl: base, apiKey: key, retry: { maxElapsed: 2000 } });
const print = (...words) => process.stdout.write(words.map((w) => (typeof w === "string" ? w : JSON.stringify(w))).join(" ") + "\n");

async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error instanceof ApiError ? `${error.status} ${error.type} ${error.requestId.length}` : String(error);
  }
  return "none";
}

for (const name of ["One", "Two", "Three"]) {
  await client.createSite(name);
}
const names = [];
for await (const { name } of client.sites({ limit: 2 })) { // two pages
  names.push(name);
}
print("sites", names.slice(1));
const hubs = [];
for await (const item of client.hubs({ siteId: site, limit: 1 })) {
  hubs.push(item.id);
}
print("hubs", hubs.length, hubs.includes(hub));
print("name", (await client.updateHub(hub, { name: "Cellar" })).name, (await client.updateHub(hub, { name: null })).name);
print("site", (await client.renameSite(site, "Mill")).name, (await client.site(site)).hub_count);
const { devices, cursor } = await client.devices(hub);
print("devices", devices.map((d) => d.name), cursor.length > 0);
let snapshot = await client.states({ hubId: hub, key: "lock" });
while (snapshot.states.length === 0) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  snapshot = await client.states({ hubId: hub, key: "lock", available: true });
}
const followed = await client.feedPage({}, { after: snapshot.position });
print("states", snapshot.states.length, snapshot.states[0].channel.key, followed.next_cursor !== "");
const reported = [];
const begun = new AbortController();
const options = { onState: (state) => reported.push(state.channel.key), onCaughtUp: () => begun.abort(new Error("begun")), signal: begun.signal };
const live = async () => { for await (const event of client.feed({ hubIds: [hub] }, "now", options)) print("unexpected", event.type); };
print("live", await errorOf(live()), reported.includes("lock"));
print("past", (await client.stateAt(hub, new Date())).data.length > 0);
for await (const record of client.audit({ types: ["site.renamed"] }, "oldest")) {
  const { data, next_cursor } = await client.auditPage({ types: ["site.renamed"], until: new Date() });
  print("audit", record.detail, record.actor.kind, data[0].cursor === record.cursor, next_cursor !== "");
  break;
}
print("label", await client.updateDevice(hub, 1, { room: "Hall" }));
print("window", (await client.openPairing(hub)).status);
await client.closePairing(hub);
const { outcome } = await client.sendAndWait(hub, 1, { key: "lock", value: false });
print("lock", outcome.status, outcome.value);
const lit = await client.sendAndWait(hub, 2, { key: "color", value: { red: 1, green: 2, blue: 3 } });
print("color", lit.outcome.status, lit.outcome.value.green);
const sent = await client.send(hub, 1, { key: "lock", value: true }, { idempotencyKey: "same" });
const again = await client.send(hub, 1, { key: "lock", value: true }, { idempotencyKey: "same" });
print("idempotent", sent.channel.desired_at === again.channel.desired_at);
print("conflict", await errorOf(client.send(hub, 1, { key: "lock", value: false }, { idempotencyKey: "same" })));
print("invalid", await errorOf(client.send(hub, 1, { key: "lock", value: 7 })));
print("offline", await errorOf(client.send(offline, 1, { key: "lock", value: true })));
print("missing", await errorOf(client.hub("hub-0000-0000-0000")));
const members = [];
for await (const member of client.members()) {
  members.push(member.role);
}
print("members", members);
print("owner", await errorOf(client.removeMember((await client.members().next()).value.id)));
const invitation = await client.invite("grace@example.com", { role: "admin" });
print("invitation", invitation.role, invitation.status);
await client.revokeInvitation(invitation.id);
print("revoked", await errorOf(client.revokeInvitation(invitation.id)));
const page = await client.events(hub, { limit: 1 });
print("page", page.data.length, page.has_more);
const controller = new AbortController();
setTimeout(() => controller.abort(new Error("left")), 200);
print("abort", await errorOf(client.events(hub, { after: await client.position(hub), wait: 60, signal: controller.signal })));
print("key", await errorOf(new Client({ baseUrl: base, apiKey: "hc_dev_unknown" }).hub(hub)));
print("keyless", await errorOf(new Client({ baseUrl: base }).hub(hub)));
// A proxy may write Retry-After as a date, which was taken for no header at all.
for (const [value, least, most] of [[new Date(Date.now() + 30_000).toUTCString(), 20, 30], ["7", 7, 7], [new Date(0).toUTCString()], ["soon"]]) {
  const busy = async () => new Response("busy", { status: 503, headers: { "Retry-After": value } });
  const error = await new Client({ baseUrl: base, apiKey: key, fetch: busy, retry: { maxElapsed: 0 } }).hub(hub).catch((e) => e);
  print("retry after", least === undefined ? error.retryAfter === undefined : error.retryAfter >= least && error.retryAfter <= most);
}
const nobody = new Client({ baseUrl: "http://127.0.0.1:1/v1", apiKey: key, retry: { maxElapsed: 0 } });
print("nobody", (await errorOf(nobody.hub(hub))).includes("fetch failed: ")); // with the cause
process.exit(0);
