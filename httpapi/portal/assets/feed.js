// The event list. It keeps the newest KEPT events and reuses its rows. When many events arrive it
// shows the newest SCREEN events once a second. All kept events appear when the user pauses the
// list, points at it or scrolls it.

import { describeEvent } from "./words.js";

const KEPT = 500;
const SCREEN = 60;
const CALM_PAUSE = 250;
const BUSY_PAUSE = 1000;
const BUSY = 20; // more new events than this at once are many
const LONGEST = 300; // characters of an event's text

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

// sortByTime orders new events of several hubs by their times.
const sortByTime = (events) => events.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));

const countNew = (n) => (n > KEPT ? `${n} new, the newest ${KEPT} kept` : `${n} new`);

function newRow() {
  const row = document.createElement("li");
  const where = document.createElement("span");
  where.append(document.createElement("a"), " ", document.createElement("a"));
  where.className = "where";
  row.append(document.createElement("span"), where, document.createElement("code"), document.createElement("time"));
  row.firstElementChild.className = "what";
  return row;
}

export class Feed {
  // section contains the list and its controls. hubs is the path of the hubs' pages. nameOf(hub)
  // returns a hub's name. names is a Names.
  constructor(section, hubs, nameOf, names) {
    this.section = section;
    this.list = section.querySelector("#events");
    this.none = section.querySelector("#no-events");
    this.bound = section.querySelector("#events-bound");
    this.button = section.querySelector("#pause");
    this.held = section.querySelector("#held");
    this.form = section.querySelector("#filter");
    this.hubs = hubs;
    this.nameOf = nameOf;
    this.names = names;
    this.kept = [];
    this.fresh = [];
    this.missed = 0;
    this.paused = false;
    this.resumed = false; // the pause has ended since the last show
    this.timer = null;
    this.drawing = false;
    this.whole = true; // every kept event that matches the filter has a row
    section.hidden = false;
    this.button.addEventListener("click", () => this.pause(!this.paused));
    this.form.addEventListener("input", () => this.redraw());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    // Rows do not move while the user points at one or focuses one.
    for (const event of ["mouseenter", "mouseleave", "focusin", "focusout"]) {
      this.list.addEventListener(event, () => {
        this.complete();
        this.schedule(0);
      });
    }
    this.list.addEventListener("scroll", () => this.complete());
    document.addEventListener("visibilitychange", () => this.schedule(0));
    this.redraw();
  }

  add(event) {
    this.names.learn(event);
    this.fresh.push(event);
    if (this.fresh.length > 2 * KEPT) {
      this.fresh = sortByTime(this.fresh).slice(-KEPT);
    }
    this.missed++;
    this.schedule(this.fresh.length > BUSY ? BUSY_PAUSE : CALM_PAUSE);
  }

  // begin removes all events and adds a row that says since when the page was disconnected.
  begin(since) {
    this.kept = [];
    this.fresh = [];
    this.redraw();
    const time = new Date(since);
    this.add({ type: "portal.away", hub_id: null, device_id: null, time: time.toISOString(), data: { since: clock.format(time) } });
  }

  // schedule calls show after a pause. At most one call is scheduled, so a slow browser draws less
  // often.
  schedule(pause) {
    if (document.hidden || this.drawing || (this.timer !== null && pause > 0)) {
      return;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      this.drawing = true;
      requestAnimationFrame(() => {
        this.drawing = false;
        this.show();
      });
    }, pause);
  }

  // pointedAt reports whether the user points at the list or focuses a row.
  pointedAt() {
    return this.list.matches(":hover") || (this.list.contains(document.activeElement) && this.list !== document.activeElement);
  }

  // show displays new events.
  show() {
    if (this.paused) {
      this.button.textContent = this.missed > 0 ? `Resume (${countNew(this.missed)})` : "Resume";
      this.held.textContent = "";
      return;
    }
    if (this.pointedAt()) {
      this.held.textContent = this.missed > 0 ? `Paused while you point here: ${this.missed > KEPT ? `${KEPT}+` : this.missed} new` : "";
      return;
    }
    this.held.textContent = "";
    this.missed = 0;
    const fresh = sortByTime(this.fresh);
    this.fresh = [];
    this.kept.push(...fresh);
    if (this.kept.length > KEPT) {
      this.kept.splice(0, this.kept.length - KEPT);
    }
    const scrolled = this.list.scrollTop; // kept, so that the rows on screen do not move
    const shown = fresh.filter(this.filter()).slice(-KEPT);
    const busy = fresh.length > BUSY;
    if (this.resumed) {
      this.redraw();
    } else if (busy && scrolled === 0) {
      this.put(shown.slice(-SCREEN), SCREEN);
      this.whole = false;
    } else {
      this.put(shown, KEPT);
    }
    this.resumed = false;
    if (scrolled > 0 && shown.length > 0) {
      this.list.scrollTop = scrolled + shown.length * this.list.firstElementChild.offsetHeight;
    }
    this.showHints();
    if (busy) {
      this.schedule(BUSY_PAUSE); // the next screen in a second, not at the next event
    }
  }

  showHints() {
    this.none.hidden = this.list.childElementCount > 0;
    this.none.textContent = this.kept.length > 0 ? "No matching events. New matching events appear here." : "No events yet. New events appear here.";
    this.bound.hidden = this.kept.length < KEPT;
  }

  // put inserts events above the list and removes the oldest rows beyond the limit.
  put(events, limit) {
    const free = [];
    while (this.list.childElementCount > Math.max(0, limit - events.length)) {
      free.push(this.list.lastElementChild);
      this.list.lastElementChild.remove();
    }
    this.list.prepend(...events.map((event) => this.fill(free.pop() ?? newRow(), event)).reverse());
  }

  fill(row, event) {
    const [text, where, type, time] = row.children;
    const [device, hub] = where.children;
    const { type: name, hub_id: id, device_id: number } = event;
    row.event = event;
    row.classList.toggle("bad", name === "hub.disconnected" || name === "device.unavailable" || name.startsWith("portal."));
    const at = new Date(event.time);
    time.dateTime = event.time;
    time.textContent = Number.isNaN(at.getTime()) ? event.time : clock.format(at);
    text.textContent = describeEvent(event).slice(0, LONGEST);
    text.title = text.textContent;
    type.textContent = name.startsWith("portal.") ? "" : name;
    device.hidden = number === null;
    hub.hidden = !id;
    if (number !== null) {
      device.href = `${this.hubs}${id}/devices/${number}`;
      device.textContent = this.names.of(id, number) || `device ${number}`;
    }
    if (id) {
      hub.href = this.hubs + id;
      hub.textContent = this.nameOf(id);
      hub.hidden = hub.textContent === "";
    }
    return row;
  }

  filter() {
    const { hub, device, type } = Object.fromEntries(new FormData(this.form));
    const wanted = device.trim().toLowerCase();
    const fits = (event) =>
      String(event.device_id) === wanted || (event.device_id !== null && this.names.of(event.hub_id, event.device_id).toLowerCase().includes(wanted));
    return (event) => (!hub || event.hub_id === hub) && (wanted === "" || fits(event)) && (!type || event.type.startsWith(type));
  }

  // redraw shows the kept events that match the filter.
  redraw() {
    this.whole = true;
    this.list.replaceChildren();
    this.put(this.kept.filter(this.filter()), KEPT);
    this.showHints();
  }

  // complete shows the kept events that were left out when many arrived.
  complete() {
    if (!this.whole) {
      this.redraw();
    }
  }

  // renamed updates the names of hubs and devices.
  renamed() {
    for (const row of this.list.children) {
      const { hub_id: id, device_id: number } = row.event;
      const [device, hub] = row.querySelectorAll(".where a");
      const name = number === null ? "" : this.names.of(id, number);
      if (name && device.textContent !== name) {
        device.textContent = name;
      }
      if (id && hub.textContent !== this.nameOf(id)) {
        hub.textContent = this.nameOf(id);
      }
    }
  }

  pause(paused) {
    this.paused = paused;
    this.resumed = !paused;
    this.missed = this.fresh.length;
    this.complete();
    this.button.setAttribute("aria-pressed", String(paused));
    this.button.textContent = paused ? "Resume" : "Pause";
    this.schedule(0);
  }
}
