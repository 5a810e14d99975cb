// The dashboard: the states and counts of all hubs, and their events.

import { updateTimes } from "./ago.js";
import { attentionEvent, attentionSoon, watchAttention } from "./attention.js";
import { Feed } from "./feed.js";
import { Names } from "./names.js";
import { reloader } from "./parts.js";
import { useTexts } from "./session.js";
import { announcer, showConnection, showState, shownStatus } from "./states.js";
import { openStream } from "./stream.js";
import { textOf } from "./texts.js";
import { useWords } from "./words.js";

const data = JSON.parse(document.getElementById("live-data").textContent);
const announce = announcer(document.getElementById("announcer"));
const section = document.querySelector(".feed");
const sites = document.getElementById("sites");
const hubs = new Map(); // states, by hub id
const nameOf = (hub) => hubs.get(hub)?.name || hub;
const absent = new Set(); // hubs that are missing after a reload, because they are on another page of the list
const refresh = reloader(["sites", "filter-hub"], showAll); // for hubs that were added or moved
let feed = null;
useWords(data);
useTexts(data.texts);
updateTimes();
watchAttention(announce);
if (section) {
  feed = new Feed(section, data.hubs, nameOf, new Names(data.hubs, () => feed.renamed()));
}

openStream(
  data,
  {
    event(event) {
      feed?.add(event);
      attentionEvent(event);
    },
    begin(since) {
      feed?.begin(since);
      attentionSoon();
    },
    now: () => {},
    states,
    gap(event) {
      feed?.add(event);
      attentionSoon();
    },
    connection: showConnection,
  },
  600,
);

// rowsOf returns the rows of the list of hubs, by hub id: one search of the page for all hubs.
const rowsOf = () => new Map(Array.from(sites.querySelectorAll("[data-hub]"), (row) => [row.dataset.hub, row]));

function states({ whole, hubs: changed }) {
  const before = new Map(hubs);
  if (whole) {
    hubs.clear();
  }
  if (!section) {
    if (changed.length > 0) {
      location.reload(); // the first hub: the page has no list yet
    }
    return;
  }
  let renamed = false;
  const rows = rowsOf();
  for (const state of changed) {
    hubs.set(state.id, state);
    const known = before.get(state.id);
    renamed ||= known !== undefined && known.name !== state.name;
    const row = rows.get(state.id);
    const elsewhere = row ? row.closest("[data-site]").dataset.site !== state.site_id : known ? known.site_id !== state.site_id : !whole;
    if (elsewhere || (!row && !("part" in sites.dataset) && !absent.has(state.id))) {
      refresh();
    } else if (row && showState(row, state) && !whole) {
      announce(textOf("hub-is", { name: nameOf(state.id), status: textOf(`status ${state.status}`) }));
      attentionSoon();
    }
  }
  if (whole) {
    for (const [hub, row] of rows) {
      if (!hubs.has(hub)) {
        const name = before.get(hub)?.name || hub;
        row.remove(); // released
        announce(textOf("hub-left", { name }));
        refresh();
      }
    }
  }
  if (renamed) {
    for (const option of document.querySelectorAll("#filter-hub option[value]:not([value=''])")) {
      option.textContent = nameOf(option.value);
    }
    feed.renamed();
  }
  count();
}

// showAll shows the states in the list of hubs after a reload.
function showAll() {
  const rows = rowsOf();
  for (const [id, state] of hubs) {
    const row = rows.get(id);
    if (row) {
      showState(row, state);
    } else {
      absent.add(id);
    }
  }
}

function count() {
  const counts = { online: 0, offline: 0, unknown: 0, reconnecting: 0, all: hubs.size };
  for (const state of hubs.values()) {
    counts[shownStatus(state)]++;
  }
  for (const [status, n] of Object.entries(counts)) {
    const element = document.querySelector(`[data-count="${status}"]`);
    if (element.textContent !== String(n)) {
      element.textContent = n;
      element.parentElement.toggleAttribute("data-none", n === 0);
    }
    if (status === "reconnecting") {
      element.parentElement.hidden = n === 0;
    }
  }
}

// Hubs that are reconnecting count as offline after a while, which no event reports.
if (section) {
  setInterval(count, 10_000);
}
