// A whole hub: a lock and a thermostat, to copy and begin with.
import { parseArgs } from "node:util";
import { Hub, HubError } from "@hubcloud/hub";

const text = { type: "string" };
const { values: { enroll: url, serial, secret, dir } } = parseArgs({
  options: { enroll: text, serial: text, secret: text, dir: text },
});

// The radio's part. Here devices obey, half a second later.
const radio = {
  check({ channel, value }) {
    if (channel.key === "mode" && !["off", "heat"].includes(value)) {
      throw new HubError("invalid_request", "mode must be off or heat");
    }
  },
  async drive({ device, channel, value }) {
    setTimeout(() => hub.observe(device, channel.key, channel.endpoint, value), 500);
  },
};

const hub = await Hub.open({ url, serial, secret, dir, firmware: "1.0.0" }, radio);
const lock = await hub.put("lock", {
  name: "Front door", manufacturer: "Example", model: "L-1",
  channels: [{ key: "lock", writable: true }, { key: "battery", unit: "%" }],
});
await hub.observe(lock, "battery", 0, 90);
await hub.put("thermostat", {
  name: "Hall thermostat", manufacturer: "Example", model: "T-1",
  channels: [
    { key: "heating_setpoint", unit: "°C", writable: true, capabilities: { min: 5, max: 35, resolution: 0.5 } },
    { key: "mode", writable: true },
  ],
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => hub.close());
await hub.run();
