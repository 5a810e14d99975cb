// A stand-in for Zigbee2MQTT: 50 devices of 20 kinds, after its public documentation.
import mqtt from "mqtt";

const state = (on = "ON", off = "OFF", endpoint) => ({
  type: "binary", name: "state", property: endpoint ? `state_${endpoint}` : "state", ...endpoint && { endpoint },
  access: 7, value_on: on, value_off: off,
});
const numeric = (name, unit, more = {}) => ({ type: "numeric", name, property: name, access: 1, unit, ...more });
const binary = (name, on = true, off = false) => ({ type: "binary", name, property: name, access: 1, value_on: on, value_off: off });
const brightness = { type: "numeric", name: "brightness", property: "brightness", access: 7, value_min: 0, value_max: 254 };
const action = (...values) => ({ type: "enum", name: "action", property: "action", access: 1, values });
const battery = numeric("battery", "%");
const climate = (unit, more = []) => ({
  type: "climate", features: [
    { ...numeric("occupied_heating_setpoint", unit, { value_min: unit === "°F" ? 41 : 5, value_max: unit === "°F" ? 86 : 30, value_step: unit === "°F" ? 1 : 0.5 }), access: 7 },
    numeric("local_temperature", unit),
    { type: "enum", name: "system_mode", property: "system_mode", access: 7, values: ["off", "auto", "heat"] },
    { type: "enum", name: "running_state", property: "running_state", access: 1, values: ["idle", "heat"] }, ...more,
  ],
});

/** Kinds: what each exposes, and a message of it. */
export const KINDS = {
  plug: [[{ type: "switch", features: [state()] }, numeric("power", "W"), numeric("energy", "kWh"), numeric("voltage", "V"), numeric("current", "A")], { state: "ON", power: 12.5, energy: 3, voltage: 230, current: 0.05 }],
  two_gang: [[{ type: "switch", endpoint: "l1", features: [state("ON", "OFF", "l1")] }, { type: "switch", endpoint: "l2", features: [state("ON", "OFF", "l2")] }], { state_l1: "ON", state_l2: "OFF" }],
  named_gang: [[{ type: "switch", endpoint: "left", features: [state("ON", "OFF", "left")] }, { type: "switch", endpoint: "right", features: [state("ON", "OFF", "right")] }], { state_left: "OFF", state_right: "ON" }],
  bulb: [[{ type: "light", features: [state(), brightness] }], { state: "ON", brightness: 254 }],
  color_bulb: [[{ type: "light", features: [state(), brightness, { type: "composite", name: "color_xy", property: "color", features: [] }] }], { state: "ON", brightness: 127, color: { x: 0.7006, y: 0.2993 } }],
  blind: [[{ type: "cover", features: [{ type: "enum", name: "state", property: "state", access: 3, values: ["OPEN", "CLOSE", "STOP"] }, { ...numeric("position", "%", { value_min: 0, value_max: 100 }), access: 7 }] }], { state: "OPEN", position: 100 }],
  lock: [[{ type: "lock", features: [state("LOCK", "UNLOCK"), { type: "enum", name: "lock_state", property: "lock_state", access: 1, values: ["not_fully_locked", "locked", "unlocked"] }] }, action("keypad_unlock"), battery], { state: "LOCK", lock_state: "locked", battery: 80 }],
  radiator: [[climate("°C"), battery, { ...binary("child_lock", "LOCK", "UNLOCK"), access: 7 }], { occupied_heating_setpoint: 21, local_temperature: 20.5, system_mode: "heat", running_state: "heat", child_lock: "UNLOCK", battery: 50 }],
  thermostat_f: [[climate("°F")], { occupied_heating_setpoint: 70, local_temperature: 69, system_mode: "off", running_state: "idle" }],
  fan: [[{ type: "fan", features: [state(), { type: "enum", name: "mode", property: "fan_mode", access: 7, values: ["low", "high"] }] }], { state: "ON", fan_mode: "low" }],
  door: [[binary("contact", false, true), battery, binary("battery_low")], { contact: true, battery: 100, battery_low: false }],
  motion: [[binary("occupancy"), numeric("illuminance", "lx"), battery], { occupancy: false, illuminance: 40, battery: 90 }],
  leak: [[binary("water_leak"), binary("tamper")], { water_leak: false, tamper: false }],
  smoke: [[binary("smoke"), binary("battery_low")], { smoke: false, battery_low: false }],
  co: [[binary("carbon_monoxide"), numeric("co2", "ppm")], { carbon_monoxide: false, co2: 600 }],
  gas: [[binary("gas")], { gas: false }],
  climate_sensor: [[numeric("temperature", "°C"), numeric("humidity", "%"), numeric("pressure", "hPa")], { temperature: 21.3, humidity: 45, pressure: 1010 }],
  button: [[action("single", "double", "hold"), battery], { battery: 70 }],
  four_buttons: [[action("1_single", "1_double", "2_single", "4_hold")], {}],
  vibration: [[binary("vibration"), binary("battery_low"), binary("sos"), numeric("device_temperature", "°C")], { vibration: false }],
};

/** Starts the stand-in, and returns it with what it was told. */
export async function standIn(broker, count = 50) {
  const client = await mqtt.connectAsync(broker), kinds = Object.keys(KINDS);
  const devices = Array.from({ length: count }, (_, n) => {
    const kind = kinds[n % kinds.length];
    return {
      ieee_address: `0x${(n + 1).toString(16).padStart(16, "0")}`, friendly_name: `${kind}/${n}`, type: "Router", kind, state: { ...KINDS[kind][1] },
      definition: { vendor: "Example", model: kind, description: kind, exposes: KINDS[kind][0] },
    };
  });
  const told = [];
  const publish = (topic, message, retain = false) => client.publishAsync(`zigbee2mqtt/${topic}`, JSON.stringify(message), { retain });
  const list = () => publish("bridge/devices", [{ ieee_address: "0x0", friendly_name: "Coordinator", type: "Coordinator" }, ...devices.map(({ state: _, kind: __, ...each }) => each)], true);
  const report = (device, values = {}) => publish(device.friendly_name, Object.assign(device.state, values));
  client.on("message", (topic, payload) => {
    const name = topic.slice("zigbee2mqtt/".length), message = JSON.parse(payload.toString());
    told.push([name, message]);
    const device = devices.find((each) => name === `${each.friendly_name}/set`);
    if (device) {
      if (device.kind === "lock") message.lock_state = message.state === "LOCK" ? "locked" : "unlocked";
      void report(device, message);
    } else if (name.startsWith("bridge/request/")) {
      const removed = devices.findIndex((each) => name.endsWith("device/remove") && each.ieee_address === message.id);
      if (removed >= 0) {
        devices.splice(removed, 1);
        void list();
      }
      void publish(name.replace("request", "response"), { status: "ok", data: {}, transaction: message.transaction });
    }
  });
  await client.subscribeAsync(["zigbee2mqtt/+/+/set", "zigbee2mqtt/+/+/get", "zigbee2mqtt/bridge/request/#"]);
  await publish("bridge/state", { state: "online" }, true);
  await list();
  for (const device of devices) await report(device);
  return { client, devices, told, publish, list, report, close: () => client.endAsync() };
}
