// Sends a command to a service that the program plays itself, once for each case, and prints the outcomes.
import { Client } from "hubcloud-client";

const before = "2026-01-02T03:04:05.000000Z";
const asked = "2026-01-02T03:04:06.000000Z";
const after = "2026-01-02T03:04:07.000000Z";
const lock = (status, value, observed) => ({
  key: "lock", endpoint: 0, kind: "lock", unit: null, available: true, value, observed_at: observed, desired: true, desired_at: asked, status,
});
const event = (cursor, type, value) => {
  const data = { cursor, type, hub_id: "hub", device_id: 1, time: after, clock_trusted: true, data: { key: "lock", endpoint: 0, value } };
  return `id: ${cursor}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
};
const desired = event("d", "channel.desired", true);
const cases = {
  locks: [desired + event("o", "channel.observed", true), lock("synchronized", true, after)],
  jams: [event("x", "channel.observed", true) + desired + event("o", "channel.observed", false), lock("diverged", false, after)],
  "report to an earlier command": [desired + event("o", "channel.observed", true), lock("pending", true, after)],
  "no report": [desired, lock("synchronized", true, before)],
  "no event for the same value": [desired, lock("synchronized", true, after)],
  "another resolution": [desired + event("o", "channel.observed", 1), lock("synchronized", 1, after)],
};

// service returns the fetch of a service whose stream has the text, and whose device has the channel.
function service(text, channel) {
  const stream = (start, signal) =>
    new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(start));
        signal.addEventListener("abort", () => controller.error(signal.reason));
      },
    });
  return async (address, { headers, signal }) => {
    const { pathname } = new URL(address);
    if (pathname.endsWith("/stream")) {
      return new Response(stream(headers["Last-Event-ID"] ? text : "id: position\n\n", signal), { headers: { "Content-Type": "text/event-stream" } });
    }
    if (pathname.endsWith("/commands")) {
      return Response.json({ hub_id: "hub", device_id: 1, channel: lock("pending", true, before) }, { status: 202 });
    }
    return Response.json({ id: 1, name: "Door", channels: [channel] });
  };
}

for (const [name, [text, channel]] of Object.entries(cases)) {
  const client = new Client({ baseUrl: "http://service/v1", apiKey: "key", fetch: service(text, channel) });
  const { outcome } = await client.sendAndWait("hub", 1, { key: "lock", value: true }, { limit: 5000 });
  process.stdout.write(`${name}: ${outcome.status} ${outcome.value}\n`);
}
process.exit(0);
