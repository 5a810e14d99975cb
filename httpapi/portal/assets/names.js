// The names of devices and the units of their channels. Only the hubs know them, so the page requests them from the hubs that it
// shows, one after the other, and updates them from events.

const HUBS = 1000; // the most hubs whose names are kept; the oldest are dropped
const FAST_HUBS = 10; // the number of hubs that are requested with the short pause
const PAUSE = 200; // between two requests
const LONG_PAUSE = 2_000;
const MAX_AGE = 600_000; // names are requested again after this time: they can change without an event
const RETRY = 60_000; // and after this time if the hub did not answer
const CONNECTED = [2_000, 15_000]; // and this long after the hub has connected

export class Names {
  // hubs is the path of the hubs' pages. updated() is called when there are new names.
  constructor(hubs, updated) {
    this.hubs = hubs;
    this.updated = updated;
    this.known = new Map(); // hub → {names: {device: {name, units}}, until}
    this.waiting = new Set();
    this.requesting = false;
    this.current = null; // the hub whose names are requested
  }

  // of returns the name of a device, "" if it is not known yet. Unknown and old names are
  // requested.
  of(hub, device) {
    const known = this.known.get(hub);
    if (!known || known.until < Date.now()) {
      this.waiting.add(hub);
      this.request();
    }
    return known?.names[device]?.name ?? "";
  }

  // unitsOf returns the units of a device's channels, as far as they are known.
  unitsOf(hub, device) {
    return this.known.get(hub)?.names[device]?.units ?? {};
  }

  // learn updates the names from an event.
  learn({ type, hub_id: hub, device_id: device, data }) {
    const known = this.known.get(hub);
    if (type === "hub.connected" && (known || this.current === hub || this.waiting.has(hub))) {
      // Request the names again: the hub answers shortly after it has connected, mostly.
      for (const pause of CONNECTED) {
        setTimeout(() => {
          this.waiting.add(hub);
          this.request();
        }, pause);
      }
    }
    const names = known?.names;
    if (names && (type === "device.added" || type === "device.forgotten")) {
      delete names[device];
      if (type === "device.added" && typeof data?.name === "string") {
        names[device] = { name: data.name };
      }
    }
  }

  async request() {
    if (this.requesting) {
      return;
    }
    this.requesting = true;
    for (const hub of this.waiting) {
      this.waiting.delete(hub);
      this.current = hub;
      const names = await fetch(`${this.hubs}${hub}/names`).then((response) => (response.ok && !response.redirected ? response.json() : null)).catch(() => null);
      const before = this.known.get(hub)?.names ?? {};
      this.known.delete(hub);
      this.known.set(hub, { names: names ?? before, until: Date.now() + (names ? MAX_AGE : RETRY) });
      if (this.known.size > HUBS) {
        this.known.delete(this.known.keys().next().value);
      }
      if (names) {
        this.updated();
      }
      await new Promise((resolve) => setTimeout(resolve, this.known.size < FAST_HUBS ? PAUSE : LONG_PAUSE));
    }
    this.requesting = false;
  }
}
