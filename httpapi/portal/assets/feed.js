// The list of events. It is bounded: KEPT events in memory, ROWS rows on the page, which are used again and again. A busy organization is shown
// once a second, in whole screens: nobody reads faster, and the browser's time is for other things.

import { sayEvent } from "./words.js";

const KEPT = 500;
const ROWS = 60;
const CALM_PAUSE = 250;
const BUSY_PAUSE = 1000;
const BUSY = 20; // events in one pause

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

// inTime puts events of several hubs that came together into the order of their clocks.
const inTime = (events) => events.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));

export class Feed {
  // section holds the list and its controls. hubs is the way to the pages of hubs; nameOf(hub) gives what one is called.
  constructor(section, hubs, nameOf) {
    this.section = section;
    this.list = section.querySelector("#events");
    this.none = section.querySelector("#no-events");
    this.button = section.querySelector("#pause");
    this.form = section.querySelector("#filter");
    this.hubs = hubs;
    this.nameOf = nameOf;
    this.kept = [];
    this.fresh = [];
    this.missed = 0;
    this.paused = false;
    this.scheduled = false;
    section.hidden = false;
    this.button.addEventListener("click", () => this.pause(!this.paused));
    this.form.addEventListener("input", () => this.again());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    document.addEventListener("visibilitychange", () => this.schedule(0));
  }

  add(event) {
    this.fresh.push(event);
    if (this.fresh.length > 2 * KEPT) {
      this.fresh = inTime(this.fresh).slice(-KEPT);
    }
    if (this.paused) {
      this.missed++;
    }
    this.schedule(this.fresh.length > BUSY ? BUSY_PAUSE : CALM_PAUSE);
  }

  // clear forgets everything.
  clear() {
    this.kept = [];
    this.fresh = [];
    this.again();
  }

  schedule(pause) {
    if (this.scheduled || document.hidden) {
      return;
    }
    this.scheduled = true;
    setTimeout(() => requestAnimationFrame(() => this.show()), pause);
  }

  // show brings what is new onto the page.
  show() {
    this.scheduled = false;
    if (this.paused) {
      this.button.textContent = `Go on (${this.missed} new)`;
      return;
    }
    const fresh = inTime(this.fresh);
    this.fresh = [];
    this.kept.push(...fresh);
    if (this.kept.length > KEPT) {
      this.kept.splice(0, this.kept.length - KEPT);
    }
    const wanted = this.filter();
    const shown = fresh.filter(wanted).slice(-ROWS);
    const read = this.list.scrollTop; // whoever has scrolled down reads on undisturbed
    for (const event of shown) {
      this.list.prepend(this.fill(this.row(), event));
    }
    if (read > 0 && shown.length > 0) {
      this.list.scrollTop = read + shown.length * this.list.firstElementChild.offsetHeight;
    }
    this.none.hidden = this.list.childElementCount > 0;
    if (fresh.length > BUSY) {
      this.scheduled = true; // the next screen in a second, not at the next event
      setTimeout(() => {
        this.scheduled = false;
        if (this.fresh.length > 0) {
          requestAnimationFrame(() => this.show());
        }
      }, BUSY_PAUSE);
    }
  }

  // row gives one that is free: a new one, or the oldest.
  row() {
    if (this.list.childElementCount >= ROWS) {
      return this.list.lastElementChild;
    }
    const row = document.createElement("li");
    row.append(document.createElement("time"), document.createElement("a"), document.createElement("code"), document.createElement("span"));
    return row;
  }

  fill(row, event) {
    const [time, link, type, text] = row.children;
    const at = new Date(event.time);
    time.dateTime = event.time;
    time.textContent = clock.format(at);
    link.href = this.hubs + event.hub_id + (event.device_id === null ? "" : `#device-${event.device_id}`);
    const device = event.device_id === null ? "" : `device ${event.device_id}`;
    link.textContent = [this.nameOf(event.hub_id), device].filter(Boolean).join(", ") || "this hub";
    type.textContent = event.type;
    text.textContent = sayEvent(event);
    text.title = text.textContent;
    return row;
  }

  filter() {
    const { hub, device, type } = Object.fromEntries(new FormData(this.form));
    const number = device?.trim() ?? "";
    return (event) =>
      (!hub || event.hub_id === hub) && (number === "" || String(event.device_id) === number) && (!type || event.type.startsWith(type));
  }

  // again shows what is kept through another filter.
  again() {
    this.list.replaceChildren();
    for (const event of this.kept.filter(this.filter()).slice(-ROWS)) {
      this.list.prepend(this.fill(this.row(), event));
    }
    this.none.hidden = this.list.childElementCount > 0;
  }

  pause(paused) {
    this.paused = paused;
    this.missed = 0;
    this.button.setAttribute("aria-pressed", String(paused));
    this.button.textContent = paused ? "Go on" : "Pause";
    this.schedule(0);
  }
}
