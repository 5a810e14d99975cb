// The list of events. It is bounded: the newest KEPT events in memory, and as many rows on the page, which are used again and again. A busy
// organization is shown once a second, in screens of the newest SCREEN events: nobody reads faster, and the browser's time is for other things. All
// that is kept is there as soon as somebody stops the list, points at it or scrolls in it.

import { describeEvent } from "./words.js";

const KEPT = 500;
const SCREEN = 60;
const CALM_PAUSE = 250;
const BUSY_PAUSE = 1000;
const BUSY = 20; // events in one pause
const LONGEST = 300; // characters of what one event says

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

// inTime puts events of several hubs that came together into the order of their clocks.
const inTime = (events) => events.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));

const events = (n) => (n > KEPT ? `${n} new, the newest ${KEPT} are kept` : `${n} new`);

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
  // section holds the list and its controls. hubs is the way to the pages of hubs; nameOf(hub) gives what one is called, names what its devices are.
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
    this.resumed = false; // it was paused until now
    this.timer = null;
    this.drawing = false;
    this.whole = true; // every event that is kept and fits has a row
    section.hidden = false;
    this.button.addEventListener("click", () => this.pause(!this.paused));
    this.form.addEventListener("input", () => this.again());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    // What somebody points at or has walked to with keys does not move away from under it.
    for (const event of ["mouseenter", "mouseleave", "focusin", "focusout"]) {
      this.list.addEventListener(event, () => {
        this.complete();
        this.schedule(0);
      });
    }
    this.list.addEventListener("scroll", () => this.complete());
    document.addEventListener("visibilitychange", () => this.schedule(0));
    this.again();
  }

  add(event) {
    this.names.learn(event);
    this.fresh.push(event);
    if (this.fresh.length > 2 * KEPT) {
      this.fresh = inTime(this.fresh).slice(-KEPT);
    }
    this.missed++;
    this.schedule(this.fresh.length > BUSY ? BUSY_PAUSE : CALM_PAUSE);
  }

  // begin forgets everything, and says since when the page was away.
  begin(since) {
    this.kept = [];
    this.fresh = [];
    this.again();
    const time = new Date(since);
    this.add({ type: "portal.away", hub_id: null, device_id: null, time: time.toISOString(), data: { since: clock.format(time) } });
  }

  // schedule has show called in a while. There is one call to come at a time, whoever asks, and however long the browser takes to draw.
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

  // pointedAt says that somebody is about to press a row: then nothing moves.
  pointedAt() {
    return this.list.matches(":hover") || (this.list.contains(document.activeElement) && this.list !== document.activeElement);
  }

  // show brings what is new onto the page.
  show() {
    if (this.paused) {
      this.button.textContent = this.missed > 0 ? `Go on (${events(this.missed)})` : "Go on";
      this.held.textContent = "";
      return;
    }
    if (this.pointedAt()) {
      this.held.textContent = this.missed > 0 ? `held while you point at it: ${this.missed > KEPT ? `${KEPT}+` : this.missed} new` : "";
      return;
    }
    this.held.textContent = "";
    this.missed = 0;
    const fresh = inTime(this.fresh);
    this.fresh = [];
    this.kept.push(...fresh);
    if (this.kept.length > KEPT) {
      this.kept.splice(0, this.kept.length - KEPT);
    }
    const read = this.list.scrollTop; // whoever has scrolled down reads on undisturbed
    const shown = fresh.filter(this.filter()).slice(-KEPT);
    const busy = fresh.length > BUSY;
    if (this.resumed) {
      this.again();
    } else if (busy && read === 0) {
      this.put(shown.slice(-SCREEN), SCREEN);
      this.whole = false;
    } else {
      this.put(shown, KEPT);
    }
    this.resumed = false;
    if (read > 0 && shown.length > 0) {
      this.list.scrollTop = read + shown.length * this.list.firstElementChild.offsetHeight;
    }
    this.sayWhatIsThere();
    if (busy) {
      this.schedule(BUSY_PAUSE); // the next screen in a second, not at the next event
    }
  }

  sayWhatIsThere() {
    this.none.hidden = this.list.childElementCount > 0;
    this.none.textContent = this.kept.length > 0 ? "None of the events here fits. New ones that do show as they happen." : "No events yet. They show here as they happen.";
    this.bound.hidden = this.kept.length < KEPT;
  }

  // put shows events above those that are there; of all of them the newest stay, in as many rows.
  put(events, rows) {
    const free = [];
    while (this.list.childElementCount > Math.max(0, rows - events.length)) {
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

  // again shows what is kept through another filter.
  again() {
    this.whole = true;
    this.list.replaceChildren();
    this.put(this.kept.filter(this.filter()), KEPT);
    this.sayWhatIsThere();
  }

  // complete shows all that is kept, where a busy time had left it out.
  complete() {
    if (!this.whole) {
      this.again();
    }
  }

  // renamed writes what hubs and devices are called anew.
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
    this.button.textContent = paused ? "Go on" : "Pause";
    this.schedule(0);
  }
}
