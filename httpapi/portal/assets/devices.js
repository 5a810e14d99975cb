// Updates of the devices on the page of a hub or of a device. They do not disturb what the user is
// doing.

import { inUse } from "./commands.js";
import { depthOf } from "./parts.js";
import { textOf } from "./texts.js";

const UNTOLD = 1_000; // between two devices whose values are missing

const scheduled = new Map(); // timers of reloads, by device and reason
let here = "";
let up = 0; // the depth of the page below /portal/
let announce = () => {};
let reloading = null;
let again = false; // whether something called for a reload of all devices during one
let clock = 0; // counts requests and news, to order them
const news = new Map(); // the clock of the newest event and command, by device and channel

// An answer that was requested before an event or a command may show what was before it.

// reported notes that an event of a channel was shown.
export function reported(device, channel) {
  news.set(`${device} ${channel}`, { ...news.get(`${device} ${channel}`), event: ++clock });
}

// commanded notes that the hub has accepted a command.
export function commanded(device, channel) {
  news.set(`${device} ${channel}`, { ...news.get(`${device} ${channel}`), command: ++clock });
  reloadDevice(device, 50);
}

// isStale reports whether a channel of an answer may be from before what the page shows. Times tell
// nothing about that: the hub's clock may be wrong.
function isStale(device, old, fresh, asked) {
  const { event = 0, command = 0 } = news.get(`${device} ${fresh.dataset.channel}`) ?? {};
  return command > asked || (event > asked && old.querySelector(".value").textContent !== fresh.querySelector(".value").textContent);
}

// showDevices sets the address of the hub's page. say(text) announces a change to screen readers.
export function showDevices(address, say) {
  here = address;
  up = depthOf(address);
  announce = say;
}

export const cardOf = (device) => document.querySelector(`[data-device="${device}"]`);

export const channelOf = (card, key, endpoint) => card?.querySelector(`[data-channel="${CSS.escape(key)}/${endpoint}"]`);

// showMain shows the value of a device's main channel in the icon of its card.
export function showMain(card, channel, value) {
  if (card.dataset.main === channel && typeof value === "boolean") {
    card.dataset.is = value;
  }
}

// reloadDevice reloads a device after a pause. Calls with the same reason during the pause have no
// effect.
export function reloadDevice(device, pause, reason = "soon") {
  const name = `${device} ${reason}`;
  if (scheduled.has(name) || !cardOf(device)) {
    return;
  }
  scheduled.set(
    name,
    setTimeout(async () => {
      scheduled.delete(name);
      const asked = ++clock;
      const from = cardOf(device)?.dataset.from ?? "";
      const fresh = await part(`${here}/devices/${device}/card?from=${from}&up=${up}`);
      const card = cardOf(device);
      if (fresh && card) {
        update(card, fresh.querySelector("[data-device]"), asked);
      }
    }, pause),
  );
}

// reloadDevices reloads all devices of the page after a pause.
export function reloadDevices(pause = 300) {
  const all = document.getElementById("devices");
  if (!all) {
    reloadDevice(document.querySelector("[data-device]").dataset.device, pause);
    return;
  }
  if (reloading !== null) {
    again = true;
    return;
  }
  reloading = setTimeout(async () => {
    again = false;
    const asked = ++clock;
    const query = new URLSearchParams(location.search);
    query.set("up", up);
    const fresh = await part(`${here}/devices?${query}`);
    reloading = null;
    if (fresh) {
      merge(all, fresh, asked);
      askForUntold(all);
    }
    if (again) {
      reloadDevices();
    }
  }, pause);
}

// askForUntold asks again for the devices whose values a slow hub did not return in time, one by one.
export function askForUntold(all) {
  const untold = [...(all?.querySelectorAll("[data-device]") ?? [])].filter((card) => !card.querySelector(".untold").hidden);
  untold.forEach((card, i) => reloadDevice(card.dataset.device, UNTOLD * (i + 1), "untold"));
}

// merge updates the page's devices. The cards of devices that stay keep their elements.
function merge(all, fresh, asked) {
  const failure = fresh.querySelector("[data-failure]");
  document.querySelector(".stale")?.remove();
  if (failure && all.querySelector("[data-device]")) {
    if (all.querySelector("[data-failure]")) {
      return; // the page says so already
    }
    // Keep the last known values, marked as such.
    failure.classList.add("stale");
    failure.textContent = textOf("devices-old");
    all.before(failure);
    return;
  }
  const focused = all.contains(document.activeElement) ? document.activeElement : null;
  if (outline(all) === outline(fresh)) {
    for (const card of fresh.querySelectorAll("[data-device]")) {
      update(cardOf(card.dataset.device), card, asked);
    }
    return;
  }
  for (const card of fresh.querySelectorAll("[data-device]")) {
    const old = all.querySelector(`[data-device="${card.dataset.device}"]`);
    if (old && sameChannels(old, card)) {
      update(old, card, asked);
      old.querySelector("h3")?.replaceWith(card.querySelector("h3"));
      card.replaceWith(old);
    } else if ([...card.querySelectorAll("[data-channel]")].some(({ dataset }) => news.get(`${card.dataset.device} ${dataset.channel}`)?.event > asked)) {
      again = true; // the answer is older than an event of this device, which had no card yet
    }
  }
  all.replaceChildren(...fresh.childNodes);
  if (focused?.isConnected) {
    focused.focus({ preventScroll: true });
  }
}

// outline returns the texts that differ if devices were added, removed, moved or renamed.
const outline = (devices) => [...devices.querySelectorAll("h2, h3, .channel .name, .empty, .pages")].map((element) => element.textContent).join("\n");

const channels = (card) => [...card.querySelectorAll("[data-channel]")].map((channel) => channel.dataset.channel).join();

const sameChannels = (a, b) => channels(a) === channels(b);

const fingerprint = (channel) => [channel.textContent, channel.dataset.status, channel.dataset.desired, channel.dataset.control].join();

// update updates a card from an answer that was requested at the clock asked, except for controls
// that the user is about to use. Answers may arrive in another order than they were requested.
function update(card, fresh, asked) {
  if (Number(card.dataset.asked ?? 0) > asked) {
    return;
  }
  card.dataset.asked = asked;
  for (const name of [".reach", ".untold"]) {
    card.querySelector(name).hidden = fresh.querySelector(name).hidden;
    card.querySelector(name).textContent = fresh.querySelector(name).textContent;
  }
  if (!fresh.querySelector(".untold").hidden) {
    reloadDevice(card.dataset.device, 10 * UNTOLD, "untold");
    return; // no new values: keep the old ones
  }
  const main = [...fresh.querySelectorAll("[data-channel]")].find(({ dataset }) => dataset.channel === fresh.dataset.main);
  const shown = main && card.querySelector(`[data-channel="${CSS.escape(fresh.dataset.main)}"]`);
  if (!shown || !isStale(card.dataset.device, shown, main, asked)) {
    for (const name of ["main", "is"]) {
      card.dataset[name] = fresh.dataset[name];
    }
    card.querySelector(".glyph")?.replaceWith(fresh.querySelector(".glyph"));
  }
  if (!sameChannels(card, fresh)) {
    card.querySelector(".channels").replaceWith(fresh.querySelector(".channels"));
    return;
  }
  for (const channel of fresh.querySelectorAll("[data-channel]")) {
    const old = card.querySelector(`[data-channel="${CSS.escape(channel.dataset.channel)}"]`);
    if (isStale(card.dataset.device, old, channel, asked)) {
      reloadDevice(card.dataset.device, 200);
      continue;
    }
    if (fingerprint(old) !== fingerprint(channel)) {
      updateChannel(card, old, channel);
    }
  }
}

function updateChannel(card, old, channel) {
  const before = old.dataset.status;
  const status = channel.dataset.status;
  const control = old.querySelector(".control");
  if (control && channel.dataset.control && (inUse(control) || old.querySelector("[data-sending]"))) {
    Object.assign(old.dataset, channel.dataset);
    for (const name of [".value", ".state"]) {
      old.querySelector(name).replaceWith(channel.querySelector(name));
    }
  } else {
    const focused = old.contains(document.activeElement) ? document.activeElement.localName : "";
    const problem = old.querySelector(".problem:not([hidden])");
    if (problem && before === status) {
      problem.removeAttribute("role"); // it was announced
      channel.querySelector(".problem")?.replaceWith(problem); // the user may not have read it yet
    }
    old.replaceWith(channel);
    if (focused) {
      channel.querySelector(focused)?.focus({ preventScroll: true });
    }
  }
  const own = before === "pending" && status === "synchronized" && news.get(`${card.dataset.device} ${channel.dataset.channel}`)?.command;
  if (own || (before !== status && ["diverged", "failed"].includes(status))) {
    const device = card.querySelector("h3")?.textContent ?? document.querySelector("h1").textContent;
    const name = card.querySelector(`[data-channel="${CSS.escape(channel.dataset.channel)}"] .name`).textContent;
    const value = card.querySelector(`[data-channel="${CSS.escape(channel.dataset.channel)}"] .value`).textContent;
    announce(textOf({ failed: "channel-failed", diverged: "channel-diverged" }[status] ?? "channel-done", { device, channel: name, value }));
  }
}

async function part(address) {
  try {
    const response = await fetch(address);
    if (!response.ok || response.redirected) {
      return null;
    }
    return new DOMParser().parseFromString(await response.text(), "text/html").body;
  } catch {
    return null; // the next event reloads it
  }
}
