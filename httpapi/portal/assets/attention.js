// What needs attention: the list is reloaded after events that may change it, and now and then.

import { updateTimes } from "./ago.js";
import { depthOf, sent } from "./parts.js";

const SOON = [1_500, 5_000]; // after an event: the reported states follow the events within seconds
const LATER = 30_000; // for what no event reports, such as a hub that says nothing
const LEAST = 1_000; // between two reloads

// Channels whose values are conditions. Other channels matter while the list has their device.
const KEYS = new Set(["smoke", "co", "heat", "leak", "tamper", "alarm", "battery", "lock", "barrier"]);

let plainTitle = document.title;
let announce = () => {};
let timers = [];
let last = 0;

const list = () => document.getElementById("attention");

// watchAttention keeps the list up to date. say announces new alarms.
export function watchAttention(say) {
  if (!list()) {
    return;
  }
  announce = say;
  const prefix = `(${list().dataset.counts}) `;
  if (plainTitle.startsWith(prefix)) {
    plainTitle = plainTitle.slice(prefix.length);
  }
  setInterval(() => document.hidden || reload(), LATER);
  document.addEventListener("alarms", reload); // alarms.js has seen other counts
  document.addEventListener("visibilitychange", () => document.hidden || reload());
  list().parentElement.addEventListener("submit", see);
}

// attentionEvent reloads the list soon if the event may change it.
export function attentionEvent(event) {
  const shown = list();
  if (!shown) {
    return;
  }
  const { key } = event.data ?? {};
  const matters = event.type.startsWith("device.") || event.type.startsWith("hub.") || event.type === "channel.status" || KEYS.has(key) || shown.querySelector(`a[href$="/hubs/${event.hub_id}/devices/${event.device_id}"]`);
  if (matters && event.type !== "channel.desired") {
    attentionSoon();
  }
}

// attentionSoon reloads the list soon, and again later.
export function attentionSoon() {
  timers.forEach(clearTimeout);
  timers = SOON.map((delay) => setTimeout(reload, Math.max(delay, last + LEAST - Date.now())));
}

async function reload() {
  const shown = list();
  if (!shown || Date.now() - last < LEAST) {
    return;
  }
  last = Date.now();
  const address = new URL(shown.dataset.address, location.href);
  address.searchParams.set("up", depthOf(shown.dataset.address));
  const text = await fetch(address, { headers: { Accept: "text/html" } })
    .then((response) => (response.ok && !response.redirected ? response.text() : null))
    .catch(() => null);
  const fresh = text && new DOMParser().parseFromString(text, "text/html").getElementById("attention");
  if (fresh && !shown.contains(document.activeElement)) {
    show(fresh);
  } else if (fresh) {
    // A person who is about to press a button must not hit another row: only the counts change.
    shown.dataset.counts = fresh.dataset.counts;
    shown.dataset.alarms = fresh.dataset.alarms;
    shown.querySelector(".attention-counts").textContent = fresh.dataset.counts;
    showCounts();
  }
}

function show(fresh) {
  const shown = list();
  const known = new Set([...shown.querySelectorAll("[data-condition]")].map((row) => row.dataset.condition));
  for (const row of fresh.querySelectorAll('[data-severity="alarm"]')) {
    if (!known.has(row.dataset.condition) && !row.closest(".seen")) {
      announce(row.querySelector(".what p").textContent);
    }
  }
  shown.replaceWith(fresh);
  updateTimes();
  showCounts();
}

// showCounts shows the counts of the dashboard's list, which is the organization's, in the title and
// in the navigation. On other pages alarms.js does.
function showCounts() {
  const { counts, alarms, address } = list().dataset;
  if (address.includes("?")) {
    return;
  }
  document.title = counts ? `(${counts}) ${plainTitle}` : plainTitle;
  for (const badge of document.querySelectorAll(".badge")) {
    badge.hidden = Number(alarms) === 0;
    badge.firstElementChild.textContent = alarms;
    badge.lastElementChild.textContent = counts;
  }
}

// see sends the form of a row without leaving the page.
async function see(submitted) {
  const form = submitted.target;
  if (!form.closest("#attention")) {
    return;
  }
  submitted.preventDefault();
  const button = form.querySelector("button");
  const byKey = button.matches(":focus-visible");
  const { condition } = form.closest("[data-condition]").dataset;
  button.disabled = true;
  if (await sent(form)) {
    button.blur();
    last = 0;
    await reload();
    document.dispatchEvent(new Event("seen")); // for the banner
    const shown = byKey && list().querySelector(`[data-condition="${CSS.escape(condition)}"] button`);
    shown?.focus?.();
  } else {
    form.submit(); // the answer is a page that says what is wrong
  }
}
