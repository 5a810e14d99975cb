// The page of a hub or of one of its devices: live values, commands without loading the page, windows that count down.

import { keepTimes } from "./ago.js";
import { Feed } from "./feed.js";
import { announcer, showState } from "./states.js";
import { openStream } from "./stream.js";
import { sayValue, useWords } from "./words.js";

const data = JSON.parse(document.getElementById("live-data").textContent);
const here = data.hubs + data.hub;
const announce = announcer(document.getElementById("announcer"));
const connection = document.getElementById("connection");
const section = document.querySelector(".feed");
const waiting = new Map(); // timers of devices that are to be asked for again
let live = false; // until then events are of before: the page was made later than they
useWords(data.words);
keepTimes();
countDown();
document.addEventListener("submit", command);
document.addEventListener("input", ({ target }) => {
  const output = target.type === "range" && target.form.querySelector("output");
  if (output) {
    output.textContent = target.value;
  }
});

const feed = section && new Feed(section, data.hubs, () => "");

openStream(
  data,
  {
    event(event) {
      feed?.add(event);
      if (live) {
        take(event);
      }
    },
    now() {
      if (!live) {
        live = true;
        reloadDevices(); // for what happened between the page and its stream
      }
    },
    states({ hubs: [state] }) {
      const head = document.querySelector(`.live-head[data-hub="${data.hub}"]`);
      const before = head?.dataset.status;
      if (!head) {
        connection.textContent = state.status === "online" ? "Live" : `The hub is ${state.status}: ${state.reason}`;
      } else if (showState(head, state)) {
        announce(`The hub is ${state.status}.`);
        if (before === "online" || state.status === "online") {
          reloadDevices();
        }
      }
    },
    gap: () => reloadDevices(),
    begin() {
      feed?.clear();
      live = false;
    },
    connection(text, ok) {
      connection.textContent = text;
      connection.classList.toggle("good", ok);
    },
  },
  section ? 600 : 0,
);

const cardOf = (device) => document.querySelector(`[data-device="${device}"]`);

// take shows what an event changes. Values are shown at once; where a channel stands after a command only its hub knows, so it is asked.
function take({ type, device_id: device, data }) {
  const said = data ?? {};
  switch (type) {
    case "channel.observed": {
      const channel = cardOf(device)?.querySelector(`[data-channel="${CSS.escape(said.key)}/${said.endpoint}"]`);
      if (!channel) {
        return;
      }
      channel.querySelector(".value bdi").textContent = sayValue(said.key, said.value, channel.dataset.unit);
      if (channel.dataset.desired !== "null" || channel.querySelector(".control")) {
        ask(device, 200);
      }
      return;
    }
    case "channel.desired":
      ask(device, 50);
      ask(device, 12_000, "later"); // a command that was given up tells nobody
      ask(device, 45_000, "at last");
      return;
    case "device.available":
    case "device.unavailable":
    case "device.updated":
      ask(device, 100);
      return;
    case "device.added":
    case "device.forgotten":
      announce(type === "device.added" ? `${said.name} has joined.` : "A device has left.");
      document.querySelector(`[data-window="${type === "device.added" ? "pairing" : "removal"}"]`)?.remove();
      reloadDevices();
  }
}

// ask has a device shown anew in a while, once however often it is asked.
function ask(device, pause, reason = "soon") {
  const name = `${device} ${reason}`;
  if (waiting.has(name) || !cardOf(device)) {
    return;
  }
  waiting.set(
    name,
    setTimeout(async () => {
      waiting.delete(name);
      const from = cardOf(device)?.dataset.from ?? "";
      const fresh = await part(`${here}/devices/${device}/card?from=${from}`);
      const card = cardOf(device);
      if (fresh && card) {
        renew(card, fresh.querySelector("[data-device]"));
      }
    }, pause),
  );
}

const says = (channel) => [channel.textContent, channel.dataset.status, channel.dataset.desired].join();

// renew puts what is new into a card, and leaves alone what somebody is about to use.
function renew(card, fresh) {
  card.querySelector(".reach").hidden = fresh.querySelector(".reach").hidden;
  for (const channel of fresh.querySelectorAll("[data-channel]")) {
    const old = card.querySelector(`[data-channel="${CSS.escape(channel.dataset.channel)}"]`);
    if (!old || says(old) === says(channel)) {
      continue; // what stays as it is stays where it is: somebody may be about to press it
    }
    const before = old.dataset.status;
    const status = channel.dataset.status;
    const focused = old.contains(document.activeElement) ? document.activeElement.localName : "";
    if (focused === "input" || old.querySelector("details[open]")) {
      Object.assign(old.dataset, channel.dataset);
      for (const name of [".value", ".state"]) {
        old.querySelector(name).replaceWith(channel.querySelector(name));
      }
    } else {
      old.replaceWith(channel);
      if (focused) {
        channel.querySelector(focused)?.focus();
      }
    }
    if (before !== status && ["diverged", "failed"].includes(status)) {
      announce(`${document.querySelector(`[data-device="${card.dataset.device}"] :is(h2, h3)`).textContent}: ${channel.querySelector(".name").textContent} has ${status}.`);
    }
  }
}

let reloading = null;

// reloadDevices asks for all devices again; on the page of one device, for that one.
function reloadDevices() {
  const all = document.getElementById("devices");
  if (!all) {
    const card = document.querySelector("[data-device]");
    ask(Number(card.dataset.device), 200);
    return;
  }
  reloading ??= setTimeout(async () => {
    reloading = null;
    const fresh = await part(`${here}/devices`);
    if (!fresh) {
      return;
    }
    if (outline(all) === outline(fresh)) {
      for (const card of fresh.querySelectorAll("[data-device]")) {
        renew(cardOf(card.dataset.device), card);
      }
    } else {
      all.replaceChildren(...fresh.childNodes);
    }
  }, 300);
}

// outline says which devices there are, where, and what they are called: while that is the same, cards are renewed and not replaced.
const outline = (devices) => [...devices.querySelectorAll("h2, h3, .channel .name, .empty")].map((element) => element.textContent).join("\n");

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

// command sends a control's form without leaving the page. What becomes of it comes by the stream.
async function command(event) {
  const form = event.target;
  if (!form.classList.contains("command")) {
    return;
  }
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  form.elements.idempotency_key.value = `portal-${crypto.randomUUID()}`; // the next press is another command
  const problem = form.closest(".control").querySelector(".problem");
  problem.hidden = true;
  let message = "The service cannot be reached. Try again in a moment.";
  try {
    const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
    if (response.ok && !response.redirected) {
      form.closest("details")?.removeAttribute("open");
      if (form.contains(document.activeElement)) {
        form.closest("details")?.querySelector("summary").focus();
      }
      return;
    }
    message = "That did not work. Load the page again.";
    if (response.headers.get("Content-Type")?.startsWith("application/json")) {
      ({ message } = await response.json());
    }
  } catch {
    // The message says it.
  }
  problem.textContent = message;
  problem.hidden = false;
}

// countDown shows how long a window is still open.
function countDown() {
  for (const box of document.querySelectorAll("[data-left]")) {
    const until = performance.now() / 1000 + Number(box.dataset.left); // by a clock of its own: that of the service may be another
    const timer = setInterval(() => {
      const left = Math.ceil(until - performance.now() / 1000);
      const shown = box.querySelector(".countdown");
      if (left > 0 && box.isConnected) {
        shown.textContent = `in ${left} s`;
        return;
      }
      clearInterval(timer);
      box.remove();
      history.replaceState(null, "", location.pathname);
    }, 1000);
  }
}
