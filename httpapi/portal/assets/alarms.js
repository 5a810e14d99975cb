// Alarms of the organization on every page: their number is shown in the navigation and in the title,
// a new one as a notice, and danger to people as a banner until somebody has seen it, with a sound
// and a notification where the person allows them. Pages that are not live say here that the service
// does not answer.

import { beginOutage, endOutage } from "./outage.js";
import { depthOf, sent } from "./parts.js";

const PERIOD = 10_000; // between two looks
const SOON = 2_000; // before the second look at a service that does not answer, and at other counts than the list's

const data = document.getElementById("form-texts");
const texts = JSON.parse(data.textContent);
const dashboard = document.querySelector("nav a[data-alarms]");
const badges = document.querySelectorAll(".badge");
const plainTitle = document.title;
const ownList = () => document.querySelector("#attention[data-address]"); // the help has a heading of that name
const listed = ownList()?.dataset.address.includes("?") === false; // by attention.js, on the dashboard
const live = document.getElementById("live-data") !== null;
let answeredAt = Date.now();
let failed = false; // whether the last look had no answer
let known = null; // the alarms of the last look; null before the first

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

async function look() {
  if (document.hidden && stored("hubcloud-sound") !== "on" && stored("hubcloud-notify") !== "on") {
    return; // a hidden page that has nothing to signal costs nothing
  }
  const response = await fetch(`${dashboard.dataset.alarms}?up=${depthOf(dashboard.dataset.alarms)}`, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!live) {
    connected(response?.status < 500);
  }
  const part = response?.ok && !response.redirected && (await response.text().catch(() => null));
  const list = part && new DOMParser().parseFromString(part, "text/html").getElementById("attention");
  if (!list) {
    return;
  }
  const alarms = Number(list.dataset.alarms);
  const shown = ownList();
  if (shown && !shown.dataset.address.includes("?") && shown.dataset.counts !== list.dataset.counts) {
    document.dispatchEvent(new Event("alarms")); // the dashboard's own list shows the same counts first
    setTimeout(look, SOON);
    return;
  }
  for (const badge of badges) {
    badge.hidden = alarms === 0;
    badge.firstElementChild.textContent = alarms;
    badge.lastElementChild.textContent = list.dataset.counts;
  }
  if (!listed) {
    document.title = list.dataset.counts ? `(${list.dataset.counts}) ${plainTitle}` : plainTitle;
  }
  const rows = [...list.querySelectorAll('[data-severity="alarm"]')].filter((row) => !row.closest(".seen"));
  warn(rows.filter((row) => "life" in row.dataset), alarms);
  const fresh = known && rows.filter((row) => !known.has(row.dataset.condition) && !("life" in row.dataset));
  known = new Set(rows.map((row) => row.dataset.condition));
  if (fresh?.length > 0 && !ownList()?.querySelector(`[data-condition="${CSS.escape(fresh[0].dataset.condition)}"]`)) {
    show(fresh[0], alarms);
  } else if (alarms === 0) {
    document.getElementById("new-alarm")?.remove();
  }
}

// connected shows since when the page is old while the service does not answer.
function connected(answered) {
  if (answered) {
    answeredAt = Date.now();
    endOutage();
  } else if (failed) {
    beginOutage(answeredAt, look);
  } else {
    setTimeout(look, SOON);
  }
  failed = !answered;
}

// described returns the title of a row and its place.
function described(row) {
  const [what, where] = row.querySelectorAll(".what p");
  const names = (element) => [...element.querySelectorAll("bdi")].map((name) => name.textContent);
  const place = [...names(where), ...names(what)].join(" › ");
  return { title: what.querySelector("b").textContent, place };
}

// show shows a notice with a new alarm, and how many others there are, as the badge counts them.
function show(row, count) {
  const { title, place } = described(row);
  const notice = document.createElement("p");
  notice.id = "new-alarm";
  notice.className = "notice bad";
  notice.setAttribute("role", "alert");
  notice.append(strong(title), ` · ${place}`, count > 1 ? `, ${fill(texts.more, { number: count - 1 })}` : "", " ", linkToAll());
  document.getElementById("new-alarm")?.remove();
  document.getElementById("main").prepend(notice);
}

function strong(text) {
  const element = document.createElement("strong");
  element.textContent = text;
  return element;
}

function linkToAll() {
  const link = document.createElement("a");
  link.href = dashboard.href;
  link.textContent = texts.alarms;
  return link;
}

// warn shows the banner with the newest danger to people and how many other alarms there are, and
// removes it once all dangers are seen.
function warn([row], count) {
  const banner = document.getElementById("danger");
  const others = count > 1 ? `, ${fill(texts.more, { number: count - 1 })}` : "";
  if (row && banner?.dataset.condition === row.dataset.condition) {
    const shown = banner.querySelector(".others"); // no new banner, which would be announced and take the focus
    if (shown.textContent !== others) {
      shown.textContent = others;
    }
    return;
  }
  banner?.remove();
  if (!row) {
    return;
  }
  const { title, place } = described(row);
  const fresh = document.createElement("section");
  fresh.id = "danger";
  fresh.className = "danger";
  fresh.dataset.condition = row.dataset.condition;
  const text = document.createElement("p");
  const [danger, more] = ["", "others"].map((name) => Object.assign(document.createElement("span"), { className: name }));
  danger.setAttribute("role", "alert"); // the count of others changes often
  danger.append(strong(title), ` ${place}`);
  more.textContent = others;
  text.append(danger, more, " ", linkToAll());
  fresh.append(text);
  const form = row.querySelector("form"); // a person who may only look has none
  if (form) {
    form.querySelector('[name="from"]')?.remove();
    form.addEventListener("submit", see);
    fresh.append(document.adoptNode(form));
  }
  document.getElementById("main").append(fresh); // below the page, so that nothing moves
  signal(row.dataset.condition, `${title} · ${place}`);
}

// see sends the banner's form without leaving the page.
async function see(submitted) {
  submitted.preventDefault();
  const form = submitted.target;
  if (await sent(form)) {
    form.closest("#danger").remove();
    look();
  } else {
    form.submit(); // the answer is a page that says what is wrong
  }
}

// signal makes the sound and shows the notification of a condition, once in this browser.
function signal(condition, text) {
  if (stored("hubcloud-signaled") === condition) {
    return;
  }
  store("hubcloud-signaled", condition);
  if (stored("hubcloud-sound") === "on") {
    beep();
  }
  if (stored("hubcloud-notify") === "on" && globalThis.Notification?.permission === "granted") {
    const shown = new Notification(text, { tag: condition, requireInteraction: true });
    shown.onclick = () => focus();
  }
}

// beep sounds six times. Without a click on the page before, the browser keeps it silent.
function beep() {
  const audio = new AudioContext();
  for (let i = 0; i < 6; i++) {
    const tone = audio.createOscillator();
    tone.frequency.value = i % 2 === 0 ? 880 : 660;
    tone.connect(audio.destination);
    tone.start(audio.currentTime + i * 0.4);
    tone.stop(audio.currentTime + i * 0.4 + 0.3);
  }
  setTimeout(() => audio.close(), 4_000);
}

// stored and store keep what a person allows in this browser, as far as it keeps anything.
function stored(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function store(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // it lasts for the page
  }
}

// The settings have a choice for each.
for (const box of document.querySelectorAll("[data-allows]")) {
  const name = `hubcloud-${box.dataset.allows}`;
  box.checked = stored(name) === "on" && (name !== "hubcloud-notify" || globalThis.Notification?.permission === "granted");
  box.addEventListener("change", async () => {
    if (box.checked && name === "hubcloud-notify") {
      box.checked = (await globalThis.Notification?.requestPermission()) === "granted";
    }
    store(name, box.checked ? "on" : "off");
    if (box.checked && name === "hubcloud-sound") {
      beep();
    }
  });
}

look();
setInterval(look, PERIOD);
document.addEventListener("visibilitychange", look);
document.addEventListener("seen", look);
