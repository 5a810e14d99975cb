// What devices are called, by hub. The service keeps no such list, so hubs are asked, one after the other and only those that the page shows; what
// their events tell is taken as well.

const HUBS = 1000; // of how many hubs names are kept; the one that was asked for longest ago goes first
const SOON = 10; // hubs are asked without much ado; then a page has most of what it shows, or shows too many for anybody to read
const PAUSE = 200; // between two questions
const LONG_PAUSE = 2_000;
const AGAIN = 600_000; // what a hub said is asked for again after that long: names are changed elsewhere, too
const FAILED = 60_000; // and after that long when it said nothing
const CONNECTED = 2_000; // and that long after it has connected

export class Names {
  // hubs is the way to the pages of hubs; told() is called when there are new names.
  constructor(hubs, told) {
    this.hubs = hubs;
    this.told = told;
    this.known = new Map(); // hub → {names, until}
    this.waiting = new Set();
    this.asking = false;
  }

  // of gives what a device is called, "" when that is not known (yet).
  of(hub, device) {
    const known = this.known.get(hub);
    if (!known || known.until < Date.now()) {
      this.waiting.add(hub);
      this.ask();
    }
    return known?.names[device] ?? "";
  }

  // learn takes the name that a device has from an event of its hub.
  learn({ type, hub_id: hub, device_id: device, data }) {
    const known = this.known.get(hub);
    if (known && type === "hub.connected") {
      // While it was away it said nothing; it answers a moment after it has connected.
      setTimeout(() => {
        this.waiting.add(hub);
        this.ask();
      }, CONNECTED);
    }
    const names = known?.names;
    if (names && (type === "device.added" || type === "device.forgotten")) {
      delete names[device];
      if (type === "device.added" && typeof data?.name === "string") {
        names[device] = data.name;
      }
    }
  }

  async ask() {
    if (this.asking) {
      return;
    }
    this.asking = true;
    for (const hub of this.waiting) {
      this.waiting.delete(hub);
      const names = await fetch(`${this.hubs}${hub}/names`).then((response) => (response.ok && !response.redirected ? response.json() : null)).catch(() => null);
      const before = this.known.get(hub)?.names ?? {};
      this.known.delete(hub);
      this.known.set(hub, { names: names ?? before, until: Date.now() + (names ? AGAIN : FAILED) });
      if (this.known.size > HUBS) {
        this.known.delete(this.known.keys().next().value);
      }
      if (names) {
        this.told();
      }
      await new Promise((resolve) => setTimeout(resolve, this.known.size < SOON ? PAUSE : LONG_PAUSE));
    }
    this.asking = false;
  }
}
