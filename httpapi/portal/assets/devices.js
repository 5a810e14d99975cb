// The devices of a hub on its page, or the one of its own page: shown anew without taking anything from under somebody's hands.

import { inUse } from "./commands.js";

const waiting = new Map(); // timers of devices that are to be asked for again
let here = "";
let up = 0; // how many steps the page is below /portal/
let announce = () => {};
let reloading = null;

// showDevices begins with the page of a hub, at that address; say(text) tells those who do not see it.
export function showDevices(address, say) {
  here = address;
  up = address.split("../").length - 1;
  announce = say;
}

export const cardOf = (device) => document.querySelector(`[data-device="${device}"]`);

export const channelOf = (card, key, endpoint) => card?.querySelector(`[data-channel="${CSS.escape(key)}/${endpoint}"]`);

// askDevice has a device shown anew in a while, once however often it is asked.
export function askDevice(device, pause, reason = "soon") {
  const name = `${device} ${reason}`;
  if (waiting.has(name) || !cardOf(device)) {
    return;
  }
  waiting.set(
    name,
    setTimeout(async () => {
      waiting.delete(name);
      const from = cardOf(device)?.dataset.from ?? "";
      const fresh = await part(`${here}/devices/${device}/card?from=${from}&up=${up}`);
      const card = cardOf(device);
      if (fresh && card) {
        renew(card, fresh.querySelector("[data-device]"));
      }
    }, pause),
  );
}

// reloadDevices asks for all devices of the page again.
export function reloadDevices(pause = 300) {
  const all = document.getElementById("devices");
  if (!all) {
    askDevice(document.querySelector("[data-device]").dataset.device, pause);
    return;
  }
  reloading ??= setTimeout(async () => {
    const query = new URLSearchParams(location.search);
    query.set("up", up);
    const fresh = await part(`${here}/devices?${query}`);
    reloading = null;
    if (fresh) {
      merge(all, fresh);
    }
  }, pause);
}

// merge puts what is new into the page's devices. Cards that stay are the same elements as before.
function merge(all, fresh) {
  const failure = fresh.querySelector("[data-failure]");
  document.querySelector(".stale")?.remove();
  if (failure && all.querySelector("[data-device]")) {
    // What is shown was true a moment ago: it stays, and it is said that it may be so no more.
    failure.classList.add("stale");
    failure.textContent = "What is shown below is from before: the hub cannot be asked now, and takes no commands. It is shown anew once it answers.";
    all.before(failure);
    return;
  }
  const focused = all.contains(document.activeElement) ? document.activeElement : null;
  if (outline(all) === outline(fresh)) {
    for (const card of fresh.querySelectorAll("[data-device]")) {
      renew(cardOf(card.dataset.device), card);
    }
    return;
  }
  for (const card of fresh.querySelectorAll("[data-device]")) {
    const old = all.querySelector(`[data-device="${card.dataset.device}"]`);
    if (old && sameChannels(old, card)) {
      renew(old, card);
      old.querySelector("h3")?.replaceWith(card.querySelector("h3"));
      card.replaceWith(old);
    }
  }
  all.replaceChildren(...fresh.childNodes);
  if (focused?.isConnected) {
    focused.focus({ preventScroll: true });
  }
}

// outline says which devices there are, where, and what they are called.
const outline = (devices) => [...devices.querySelectorAll("h2, h3, .channel .name, .empty, .pages")].map((element) => element.textContent).join("\n");

const channels = (card) => [...card.querySelectorAll("[data-channel]")].map((channel) => channel.dataset.channel).join();

const sameChannels = (a, b) => channels(a) === channels(b);

const says = (channel) => [channel.textContent, channel.dataset.status, channel.dataset.desired, channel.dataset.control].join();

// renew puts what is new into a card, and leaves alone what somebody is about to use.
function renew(card, fresh) {
  for (const mark of [".reach", ".untold"]) {
    card.querySelector(mark).hidden = fresh.querySelector(mark).hidden;
    card.querySelector(mark).textContent = fresh.querySelector(mark).textContent;
  }
  if (!fresh.querySelector(".untold").hidden) {
    return; // it has no values: those of before are better
  }
  if (!sameChannels(card, fresh)) {
    card.querySelector(".channels").replaceWith(fresh.querySelector(".channels"));
    return;
  }
  for (const channel of fresh.querySelectorAll("[data-channel]")) {
    const old = card.querySelector(`[data-channel="${CSS.escape(channel.dataset.channel)}"]`);
    if (says(old) !== says(channel)) {
      renewChannel(card, old, channel);
    }
  }
}

function renewChannel(card, old, channel) {
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
      channel.querySelector(".problem")?.replaceWith(problem); // nobody has read it yet
    }
    old.replaceWith(channel);
    if (focused) {
      channel.querySelector(focused)?.focus({ preventScroll: true });
    }
  }
  if (before !== status && ["diverged", "failed"].includes(status)) {
    const device = card.querySelector("h3")?.textContent ?? document.querySelector("h1").textContent;
    announce(`${device}: ${card.querySelector(`[data-channel="${CSS.escape(channel.dataset.channel)}"] .name`).textContent} has ${status}.`);
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
    return null; // the next event, or the next load, shows it
  }
}
