// Sends a command to a jammed lock, and one that another command supersedes, and prints the outcomes.
import { Client } from "hubcloud-client";

const { base, key, hub } = JSON.parse(process.argv[2]);
const client = new Client({ baseUrl: base, apiKey: key });
const { outcome } = await client.sendAndWait(hub, 1, { key: "lock", value: false });
process.stdout.write(`jammed ${outcome.status} ${outcome.value}\n`);
process.exit(0);
