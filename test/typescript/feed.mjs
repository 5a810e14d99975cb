// Follows the events of all hubs and prints each event's hub, cursor and type. Ends after the number of events.
import { Client, isFeedGap } from "hubcloud-client";

const { base, key, after, hubs, count } = JSON.parse(process.argv[2]);
const client = new Client({ baseUrl: base, apiKey: key, retry: { maxBackoff: 1000 } });
const from = after === "" ? "oldest" : { after };
let seen = 0;
try {
  for await (const event of client.feed({ hubIds: hubs, types: ["channel.*"] }, from)) {
    process.stdout.write(`${event.hub_id} ${event.cursor} ${isFeedGap(event) ? event.data.reason : event.type}\n`);
    if (++seen === count) {
      const page = await client.feedPage({}, { after: event.position, limit: 1 });
      process.stdout.write(`page ${page.next_cursor !== ""} ${(await client.feedPosition()) !== ""}\n`);
      break;
    }
  }
} catch (error) {
  process.stdout.write(`${error}\n`);
}
process.exit(0);
