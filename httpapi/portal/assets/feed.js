// The event list. It keeps the newest KEPT important events and as many others, and reuses its rows.
// When many events arrive it shows the newest SCREEN events once a second. All kept events appear
// when the user pauses the list, points at it or scrolls it.

import { exactTime } from "./ago.js";
import { textOf } from "./texts.js";
import { describeEvent, severityOf } from "./words.js";

const KEPT = 500;
const SCREEN = 60;
const CALM_PAUSE = 250;
const BUSY_PAUSE = 1000;
const BUSY = 20; // more new events than this at once are many
const LONGEST = 300; // characters of an event's text

let clock; // made at its first use, as those of ago.js
const clockTime = (at) => (clock ??= new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })).format(at);

const MARKS = { 2: ["!", "wait"], 3: ["▲", "bad"] }; // the signs and colors of severities

// bounded returns the newest KEPT important and the newest KEPT other events, so that many readings
// do not push an alarm out.
function bounded(events) {
  let important = 0;
  let routine = 0;
  return events
    .toReversed()
    .filter((event) => (event.severity > 0 ? ++important : ++routine) <= KEPT)
    .reverse();
}

const countNew = (n) => textOf(n > KEPT ? "feed-new-kept" : "feed-new", { number: n, kept: KEPT });

function newRow() {
  const row = document.createElement("li");
  const where = document.createElement("span");
  where.append(document.createElement("a"), " ", document.createElement("a"));
  where.className = "where";
  const what = document.createElement("span");
  what.append(document.createElement("span"), document.createElement("span"));
  what.className = "what";
  what.firstElementChild.className = "tag severity";
  const time = document.createElement("time");
  time.dataset.exact = ""; // not a relative time
  row.append(what, where, document.createElement("code"), time);
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
    this.form.addEventListener("input", () => {
      this.redraw();
      this.schedule(0); // new events that did not match before
    });
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
    event.severity = severityOf(event);
    this.fresh.push(event);
    if (this.fresh.length > 4 * KEPT) {
      this.fresh = bounded(this.fresh);
    }
    if (this.matches(event)) {
      this.missed++;
      this.schedule(this.missed > BUSY ? BUSY_PAUSE : CALM_PAUSE);
    }
  }

  // begin removes all events and adds a row that says since when the page was disconnected.
  begin(since) {
    this.kept = [];
    this.fresh = [];
    this.redraw();
    const time = new Date(since);
    this.add({ type: "portal.away", hub_id: null, device_id: null, time: time.toISOString(), data: { since: clockTime(time) } });
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
      this.button.textContent = this.missed > 0 ? textOf("feed-resume-new", { new: countNew(this.missed) }) : textOf("feed-resume");
      this.held.textContent = "";
      return;
    }
    if (this.pointedAt()) {
      this.held.textContent = this.missed > 0 ? textOf("feed-held", { number: this.missed > KEPT ? `${KEPT}+` : this.missed }) : "";
      return;
    }
    this.held.textContent = "";
    this.missed = 0;
    const fresh = this.fresh; // in the order of the logs: hubs' clocks may be wrong
    this.fresh = [];
    this.kept.push(...fresh);
    if (this.kept.length > KEPT) {
      this.kept = bounded(this.kept);
    }
    const scrolled = this.list.scrollTop; // kept, so that the rows on screen do not move
    const shown = fresh.filter(this.matches).slice(-KEPT);
    const busy = shown.length > BUSY;
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
    this.none.textContent = textOf(this.kept.length > 0 ? "feed-no-match" : "feed-empty");
    this.bound.hidden = this.list.childElementCount < KEPT;
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
    const [mark, sentence] = text.children;
    row.event = event;
    const [sign, color] = MARKS[event.severity] ?? ["", ""];
    row.dataset.severity = event.severity;
    mark.hidden = sign === "";
    mark.className = `tag severity ${color}`;
    mark.textContent = sign && `${sign} ${textOf(`severity ${event.severity}`)}`;
    const at = new Date(event.time);
    time.dateTime = event.time;
    time.textContent = Number.isNaN(at.getTime()) ? event.time : clockTime(at);
    time.title = Number.isNaN(at.getTime()) ? "" : exactTime(at);
    this.describe(sentence, event);
    type.textContent = name.startsWith("portal.") ? "" : name;
    device.hidden = number === null;
    hub.hidden = !id;
    if (number !== null) {
      device.href = `${this.hubs}${id}/devices/${number}`;
      device.textContent = this.names.of(id, number) || textOf("device-number", { number });
    }
    if (id) {
      hub.href = this.hubs + id;
      hub.textContent = this.nameOf(id);
      hub.hidden = hub.textContent === "";
    }
    return row;
  }

  describe(sentence, event) {
    sentence.textContent = describeEvent(event, this.names.unitsOf(event.hub_id, event.device_id)).slice(0, LONGEST);
    sentence.title = sentence.textContent;
  }

  // filter returns a function that reports whether an event matches the form.
  filter() {
    const { hub, device, type, severity } = Object.fromEntries(new FormData(this.form));
    const wanted = device.trim().toLowerCase();
    const fits = (event) =>
      String(event.device_id) === wanted || (event.device_id !== null && this.names.of(event.hub_id, event.device_id).toLowerCase().includes(wanted));
    return (event) => event.severity >= severity && (!hub || event.hub_id === hub) && (wanted === "" || fits(event)) && (!type || event.type.startsWith(type));
  }

  // redraw shows the kept events that match the filter.
  redraw() {
    this.whole = true;
    this.matches = this.filter();
    this.section.classList.toggle("details", this.form.elements.details.checked);
    this.list.replaceChildren();
    this.put(this.kept.filter(this.matches).slice(-KEPT), KEPT);
    this.showHints();
  }

  // complete shows the kept events that were left out when many arrived.
  complete() {
    if (!this.whole) {
      this.redraw();
    }
  }

  // renamed updates the names of hubs and devices, and the units.
  renamed() {
    for (const row of this.list.children) {
      const { hub_id: id, device_id: number } = row.event;
      const [device, hub] = row.querySelectorAll(".where a");
      this.describe(row.querySelector(".what").lastElementChild, row.event);
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
    this.button.textContent = textOf(paused ? "feed-resume" : "feed-pause");
    this.schedule(0);
  }
}
