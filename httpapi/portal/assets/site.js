// The page of a site: the states of its hubs, and what needs attention there.

import { updateTimes } from "./ago.js";
import { attentionEvent, attentionSoon, watchAttention } from "./attention.js";
import { reloader } from "./parts.js";
import { useTexts } from "./session.js";
import { announcer, showConnection, showState } from "./states.js";
import { openStream } from "./stream.js";
import { textOf } from "./texts.js";

const data = JSON.parse(document.getElementById("live-data").textContent);
const announce = announcer(document.getElementById("announcer"));
const list = document.getElementById("site-hubs");
const absent = new Set(); // hubs that are missing after a reload: the page is behind the stream
const refresh = reloader(["site-count", "site-actions", "site-hubs"]); // for hubs that were added or moved
const rowOf = (id) => list.querySelector(`[data-hub="${id}"]`);
const nameIn = (row) => row.querySelector("a bdi").textContent;
useTexts(data.texts);
updateTimes();
watchAttention(announce);

openStream(
  data,
  {
    event: attentionEvent,
    gap: attentionSoon,
    begin: attentionSoon,
    now: () => {},
    states,
    connection: showConnection,
  },
  0,
);

function states({ whole, hubs }) {
  for (const state of hubs) {
    const row = rowOf(state.id);
    if (!row && !absent.has(state.id)) {
      absent.add(state.id);
      refresh();
    } else if (row && showState(row, state)) {
      announce(textOf("hub-is", { name: nameIn(row), status: textOf(`status ${state.status}`) }));
      attentionSoon();
    }
  }
  if (!whole) {
    return;
  }
  const here = new Set(hubs.map(({ id }) => id));
  for (const row of list.querySelectorAll("[data-hub]")) {
    if (!here.has(row.dataset.hub)) {
      announce(textOf("hub-left-site", { name: nameIn(row) }));
      absent.delete(row.dataset.hub);
      row.remove();
      refresh();
    }
  }
}
