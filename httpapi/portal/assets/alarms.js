// Alarms of the organization on every page: their number is shown in the navigation and in the title,
// a new one as a notice, and danger to people as a banner until somebody has seen it, with a sound
// and a notification where the person allows them. Pages that are in no organization do so for all
// of the person's. Pages that are not live say here that the service does not answer.

import { beginOutage, endOutage } from "./outage.js";
import { depthOf, sent } from "./parts.js";

const PERIOD = 10_000; // between two looks
const SOON = 2_000; // before the second look at a service that does not answer, and at other counts than the list's

const data = document.getElementById("form-texts");
const texts = JSON.parse(data.textContent);
const watched = [...document.querySelectorAll("a[data-alarms]")]; // the dashboards of organizations
const inside = watched.some((dashboard) => dashboard.closest("nav")); // an organization
const badges = document.querySelectorAll(".badge");
const plainTitle = document.title;
const ownList = () => document.querySelector("#attention[data-address]"); // the help has a heading of that name
const listed = ownList()?.dataset.address.includes("?") === false; // by attention.js, on the dashboard
const live = document.getElementById("live-data") !== null;
let answeredAt = Date.now();
let failed = false; // whether the last look had no answer
const lists = new Map(); // what needs attention, by dashboard
let known = null; // the alarms of the last look; null before the first

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

async function look() {
  if (document.hidden && stored("hubcloud-sound") !== "on" && stored("hubcloud-notify") !== "on") {
    return; // a hidden page that has nothing to signal costs nothing
  }
  const answers = await Promise.all(watched.map(read));
  if (!answers.some(Boolean)) {
    return;
  }
  const { counts } = lists.get(watched[0])?.dataset ?? {};
  const alarms = [...lists.values()].reduce((sum, list) => sum + Number(list.dataset.alarms), 0);
  const shown = ownList();
  if (shown && !shown.dataset.address.includes("?") && shown.dataset.counts !== counts) {
    document.dispatchEvent(new Event("alarms")); // the dashboard's own list shows the same counts first
    setTimeout(look, SOON);
    return;
  }
  for (const badge of badges) {
    badge.hidden = alarms === 0;
    badge.firstElementChild.textContent = alarms;
    badge.lastElementChild.textContent = counts;
  }
  if (inside && !listed) {
    document.title = counts ? `(${counts}) ${plainTitle}` : plainTitle;
  }
  const rows = [...lists].flatMap(([dashboard, list]) => [...list.querySelectorAll('[data-severity="alarm"]')].filter((row) => !row.closest(".seen")).map((row) => ({ ...described(row, dashboard), row, dashboard, key: row.dataset.condition, life: "life" in row.dataset })));
  warn(
    rows.find(({ life }) => life),
    alarms,
  );
  const fresh = known && rows.find(({ key, life }) => !life && !known.has(key));
  known = new Set(rows.map(({ key }) => key));
  if (fresh && !ownList()?.querySelector(`[data-condition="${CSS.escape(fresh.key)}"]`)) {
    show(fresh, alarms);
  } else if (alarms === 0) {
    document.getElementById("new-alarm")?.remove();
  }
}

// read reads what needs attention in an organization, and returns whether it has; if not, it stays
// as it was.
async function read(dashboard) {
  const { alarms } = dashboard.dataset;
  const response = await fetch(`${alarms}?up=${depthOf(alarms)}`, { headers: { Accept: "text/html" } }).catch(() => null);
  if (inside && !live) {
    connected(response?.status < 500);
  }
  const part = response?.ok && !response.redirected && (await response.text().catch(() => null));
  const list = part && new DOMParser().parseFromString(part, "text/html").getElementById("attention");
  if (list) {
    lists.set(dashboard, list);
  }
  return Boolean(list);
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

// described returns the title of a row and its place, with the organization outside of it.
function described(row, dashboard) {
  const [what, where] = row.querySelectorAll(".what p");
  const names = (element) => [...element.querySelectorAll("bdi")].map((name) => name.textContent);
  const place = [...(inside ? [] : [dashboard.textContent]), ...names(where), ...names(what)].join(" › ");
  return { title: what.querySelector("b").textContent, place };
}

// show shows a notice with a new alarm, and how many others there are, as the badge counts them.
function show({ title, place, dashboard }, count) {
  const notice = document.createElement("p");
  notice.id = "new-alarm";
  notice.className = "notice bad";
  notice.setAttribute("role", "alert");
  notice.append(strong(title), ` · ${place}`, count > 1 ? `, ${fill(texts.more, { number: count - 1 })}` : "", " ", linkToAll(dashboard));
  document.getElementById("new-alarm")?.remove();
  document.getElementById("main").prepend(notice);
}

function strong(text) {
  const element = document.createElement("strong");
  element.textContent = text;
  return element;
}

function linkToAll(dashboard) {
  const link = document.createElement("a");
  link.href = dashboard.href;
  link.textContent = texts.alarms;
  return link;
}

// warn shows the banner with the newest danger to people and how many other alarms there are, and
// removes it once all dangers are seen.
function warn(danger, count) {
  const banner = document.getElementById("danger");
  const others = count > 1 ? `, ${fill(texts.more, { number: count - 1 })}` : "";
  if (danger && banner?.dataset.condition === danger.key) {
    const shown = banner.querySelector(".others"); // no new banner, which would be announced and take the focus
    if (shown.textContent !== others) {
      shown.textContent = others;
    }
    return;
  }
  banner?.remove();
  if (!danger) {
    return;
  }
  const { row, title, place, key, dashboard } = danger;
  const fresh = document.createElement("section");
  fresh.id = "danger";
  fresh.className = "danger";
  fresh.dataset.condition = key;
  const text = document.createElement("p");
  const [what, more] = ["", "others"].map((name) => Object.assign(document.createElement("span"), { className: name }));
  what.setAttribute("role", "alert"); // the count of others changes often
  what.append(strong(title), ` ${place}`);
  more.textContent = others;
  text.append(what, more, " ", linkToAll(dashboard));
  fresh.append(text);
  const form = row.querySelector("form"); // a person who may only look has none
  if (form) {
    const own = document.importNode(form, true);
    own.querySelector('[name="from"]')?.remove();
    own.addEventListener("submit", see);
    fresh.append(own);
  }
  document.getElementById("main").append(fresh); // below the page, so that nothing moves
  signal(key, `${title} · ${place}`);
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
