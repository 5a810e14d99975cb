// A whole hub with a lock, to copy and begin with.
import { parseArgs } from "node:util";
import { Hub, HubError, timestamp } from "@hubcloud/hub";

const text = { type: "string" };
const { values: { enroll: url, serial, secret, dir } } = parseArgs({
  options: { enroll: text, serial: text, secret: text, dir: text },
});
const window = () => ({ status: "open", expires_in: 120 });
const fail = (type, message) => { throw new HubError(type, message); };
const ROOM = 30; // for codes
const find = ({ device_id }) => device_id === lock.id ? lock : fail("not_found", `no device ${device_id}`);
const hub = await Hub.open({ url, serial, secret, dir, firmware: "1.0.0" }, {
  "devices.list": () => ({ devices: [described()] }),
  "devices.get": (params) => ({ device: find(params) && described() }),
  "devices.forget": (params) => fail("invalid_request", `${find(params).name} is still on the network`),
  "pairing.open": window, "pairing.close": () => ({}), "removal.open": window, "removal.close": () => ({}),
  "channels.command"(params) {
    const channel = find(params).channels.find((each) => each.key === params.key && !params.endpoint) ?? fail("not_found", "no such channel");
    if (typeof params.value !== "boolean") fail("invalid_request", "a lock takes true or false");
    tell("channel.desired", channel, params.value, { desired: params.value, desired_at: timestamp(), status: "pending" });
    setTimeout(report, 500, channel, params.value); // here your radio sends it: this lock obeys
    return { channel };
  },
  "credentials.list": (params) => ({ slots: Object.keys(find(params).codes).map(Number), capacity: ROOM }),
  "credentials.set"(params) {
    const { slot, label, code, valid_from, valid_until, schedule } = params, known = find(params).codes[slot];
    if (slot > ROOM) fail("lock_full", `the lock has room for ${ROOM} codes`);
    if (valid_from || valid_until || schedule?.length) fail("command_refused", "this lock cannot keep times");
    if (!code && !known) fail("invalid_request", `slot ${slot} has no code to change`);
    // here your radio sets the code: keep and log it nowhere
    lock.codes[slot] = label;
    return changed(known ? [] : ["created", { slot, label }], ["applied", { slot, state: "active" }]);
  },
  "credentials.remove"(params) {
    if (!find(params).codes[params.slot]) return {};
    delete lock.codes[params.slot];
    return changed(["revoked", { slot: params.slot }]);
  },
});
const described = () => ({ ...lock, codes: undefined }); // what the cloud need not know
const lock = hub.get("lock") ?? {
  id: 1, name: "Front door", manufacturer: "Example", model: "L-1", codes: {}, channels: [{
    key: "lock", endpoint: 0, kind: "lock", unit: null, available: true, readable: true, writable: true, capabilities: {},
    value: true, observed_at: timestamp(), desired: null, desired_at: null, status: "synchronized",
  }],
};
async function changed(...events) { // answered when it is on disk
  await hub.change({ lock }, events.filter(([type]) => type).map(([type, data]) => ({ type: `credential.${type}`, device_id: lock.id, data })));
  return {};
}
function tell(type, channel, value, state) { // an event and the state that it tells of are stored together
  Object.assign(channel, state);
  void hub.change({ lock }, [{ type, device_id: lock.id, data: { key: channel.key, endpoint: 0, value } }]);
}
function report(channel, value) { // call it, too, when somebody turns the key
  tell("channel.observed", channel, value, { value, observed_at: timestamp(), status: channel.desired === value ? "synchronized" : "diverged" });
}
for (const channel of lock.channels) if (channel.status === "pending") report(channel, channel.desired); // a restart came between
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => hub.close());
await hub.run();
