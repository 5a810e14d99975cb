// The dashboard: states and counts of all hubs, and the feed of what happens at them.

import { keepTimes } from "./ago.js";
import { Feed } from "./feed.js";
import { announcer, showState } from "./states.js";
import { openStream } from "./stream.js";
import { useWords } from "./words.js";

const data = JSON.parse(document.getElementById("live-data").textContent);
useWords(data.words);
keepTimes();

const hubs = new Map(); // what is known of each, by id
const section = document.querySelector(".feed");
if (section) {
  begin();
}

function begin() {
  const connection = document.getElementById("connection");
  const announce = announcer(document.getElementById("announcer"));
  const nameOf = (hub) => hubs.get(hub)?.name || hub;
  const feed = new Feed(section, data.hubs, nameOf);
  let stale = false;

  openStream(
    data,
    {
      event: (event) => feed.add(event),
      begin: () => feed.clear(),
      now: () => {},
      states({ whole, hubs: changed }) {
        if (whole) {
          hubs.clear();
        }
        for (const state of changed) {
          hubs.set(state.id, state);
          const row = document.querySelector(`#sites [data-hub="${state.id}"]`);
          if (!row || row.closest("[data-site]").dataset.site !== state.site_id) {
            stale = true;
          } else if (showState(row, state) && !whole) {
            announce(`${nameOf(state.id)} is ${state.status}.`);
          }
        }
        count();
        if (stale) {
          refresh();
        }
      },
      gap(hub) {
        feed.add({ type: "portal.gap", hub_id: hub, device_id: null, time: new Date().toISOString(), data: {} });
      },
      connection(text, ok) {
        connection.textContent = text;
        connection.classList.toggle("good", ok);
      },
    },
    600,
  );

  // refresh brings sites and hubs that the page does not have yet, or has at another place.
  async function refresh() {
    stale = false;
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!response.ok || response.redirected) {
      return;
    }
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const id of ["sites", "filter-hub"]) {
      const fresh = page.getElementById(id);
      if (fresh) {
        const chosen = document.getElementById(id).value;
        document.getElementById(id).replaceChildren(...fresh.childNodes);
        if (chosen) {
          document.getElementById(id).value = chosen;
        }
      }
    }
  }
}

function count() {
  const counts = { online: 0, offline: 0, unknown: 0, all: hubs.size };
  for (const { status } of hubs.values()) {
    counts[status]++;
  }
  for (const [status, n] of Object.entries(counts)) {
    const element = document.querySelector(`[data-count="${status}"]`);
    if (element.textContent !== String(n)) {
      element.textContent = n;
      element.parentElement.toggleAttribute("data-none", n === 0);
    }
  }
}
