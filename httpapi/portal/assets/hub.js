// The page of a hub or of a device: live values, commands, and the countdown of pairing and
// removal.

import { updateTimes } from "./ago.js";
import { attentionEvent, attentionSoon, watchAttention } from "./attention.js";
import { addToChart, drawCharts } from "./charts.js";
import { submitCommands } from "./commands.js";
import { askForUntold, cardOf, channelOf, commanded, reloadDevice, reloadDevices, reported, showDevices, showMain } from "./devices.js";
import { Feed } from "./feed.js";
import { Names } from "./names.js";
import { reloader } from "./parts.js";
import { useTexts } from "./session.js";
import { announcer, showConnection, showState } from "./states.js";
import { openStream } from "./stream.js";
import { textOf } from "./texts.js";
import { formatValue, useWords } from "./words.js";
import { closeWindow, countDown } from "./windows.js";

const data = JSON.parse(document.getElementById("live-data").textContent);
const announce = announcer(document.getElementById("announcer"));
const section = document.querySelector(".feed");
let status = document.querySelector(".live-head[data-hub]")?.dataset.status;
let live = false; // events before hub.portal_now are older than the page
let feed = null;
let shown = ["", ""]; // the last state of the stream
useWords(data);
useTexts(data.texts);
updateTimes();
countDown(announce);
watchAttention(announce);
drawCharts();
showDevices(data.hubs + data.hub, announce);
const showHistory = document.getElementById("history") ? reloader(["history"]) : () => {};
document.addEventListener("period", showHistory);
submitCommands((form) => commanded(form.closest("[data-device]").dataset.device, form.closest("[data-channel]").dataset.channel));
if (section) {
  feed = new Feed(section, data.hubs, () => "", new Names(data.hubs, () => feed.renamed()));
}
if (document.querySelector("[data-late]")) {
  reloadDevices(0);
} else {
  askForUntold(document.getElementById("devices"));
}

openStream(
  data,
  {
    event(event) {
      feed?.add(event);
      if (live) {
        apply(event);
        attentionEvent(event);
        if (event.type.startsWith("channel.") && cardOf(event.device_id)) {
          showHistory();
        }
      }
    },
    now() {
      if (!live) {
        live = true;
        reloadDevices(); // for changes between the page's creation and the stream
      }
    },
    states({ hubs: [state] }) {
      const head = document.querySelector(".live-head[data-hub]");
      if (head) {
        showState(head, state);
        head.querySelector("h1 bdi").textContent = state.name || state.id;
      } else {
        connection(state.status === "online" ? textOf("live") : textOf("hub-status-reason", { ...state, status: textOf(`status ${state.status}`) }), state.status === "online" ? "good" : "bad");
      }
      if (status !== undefined && status !== state.status) {
        announce(textOf("hub-status", { status: textOf(`status ${state.status}`) }));
        attentionSoon();
        reloadDevices();
      }
      status = state.status;
      connection(...shown);
    },
    gap(event) {
      feed?.add(event);
      attentionSoon();
      reloadDevices();
    },
    begin(since) {
      feed?.begin(since);
      attentionSoon();
      live = false;
    },
    back: () => reloadDevices(0), // a command that failed has no event
    connection,
  },
  section ? 600 : 0,
);

function linkTo(device) {
  const link = document.createElement("a");
  link.href = `${data.hubs}${data.hub}/devices/${device}`;
  link.textContent = textOf("view-device");
  return link;
}

// connection shows the state of the page's stream, and no "Live" beside a hub that is not online. The
// page of a device shows there that its hub is offline.
function connection(text, how) {
  shown = [text, how];
  if (text !== textOf("live") || ["online", undefined].includes(status)) {
    showConnection(text, how);
  } else if (section) {
    showConnection("", "");
  }
}

// apply shows the changes of an event: a value at once, the status of a command after reloading the
// device from its hub.
function apply(event) {
  const { type, device_id: device, data: eventData } = event;
  switch (type) {
    case "channel.observed": {
      reported(device, `${eventData.key}/${eventData.endpoint}`); // a device without a card may be about to get one
      if (cardOf(device)) {
        addToChart(eventData, Date.parse(event.time) / 1000, event.clock_trusted !== false);
      }
      const channel = channelOf(cardOf(device), eventData.key, eventData.endpoint);
      if (!channel) {
        return;
      }
      showMain(cardOf(device), channel.dataset.channel, eventData.value);
      channel.querySelector(".value bdi").textContent = formatValue(eventData.key, eventData.value, channel.dataset.unit);
      if (channel.dataset.desired !== "null" || channel.dataset.control) {
        reloadDevice(device, 200);
      }
      return;
    }
    case "channel.desired":
      reloadDevice(device, 50);
      reloadDevice(device, 12_000, "later"); // not every hub tells that a command fails
      reloadDevice(device, 45_000, "last");
      return;
    case "channel.status":
    case "device.available":
    case "device.unavailable":
      reloadDevice(device, 100);
      return;
    case "device.updated":
    case "hub.connected": // after a reset the hub has other devices
    case "hub.log_reset": // the same
    case "hub.events_skipped": // the values may be older than the events that are missing
      reloadDevices();
      return;
    case "device.added":
      announce(textOf("device-joined", { name: eventData.name || textOf("a-device") }));
      closeWindow("pairing", textOf("device-joined-as", { name: eventData.name || textOf("a-device"), number: device }), linkTo(device));
      reloadDevices();
      return;
    case "device.forgotten":
      announce(textOf("device-removed"));
      closeWindow("removal", textOf("device-removed"));
      reloadDevices();
  }
}
