// Follows a hub and prints each event's cursor and type, and "gap" and "resync" where they occur. Ends after the number of events.
import { Client, isGap, ResyncError } from "hubcloud-client";

const { base, key, hub, after, count, resync } = JSON.parse(process.argv[2]);
const client = new Client({ baseUrl: base, apiKey: key, retry: { maxBackoff: 1000 } });
const print = (...words) => process.stdout.write(words.join(" ") + "\n");
const from = after === "" ? "oldest" : { after };
const options = resync ? { onResync: ({ devices }) => print("resync", devices.length) } : {};
let seen = 0;
try {
  for await (const event of client.follow(hub, from, options)) {
    print(event.cursor, event.type);
    if (isGap(event)) {
      print("gap", event.data.from, event.data.to);
    }
    if (++seen === count) {
      break;
    }
  }
} catch (error) {
  print(error instanceof ResyncError ? "ResyncError" : String(error));
}
process.exit(0);
