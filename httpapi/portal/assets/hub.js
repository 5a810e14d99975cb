// The page of a hub or of one of its devices: live values, commands without loading the page, windows that count down.

import { keepTimes } from "./ago.js";
import { takeCommands } from "./commands.js";
import { askDevice, cardOf, channelOf, reloadDevices, showDevices } from "./devices.js";
import { Feed } from "./feed.js";
import { Names } from "./names.js";
import { announcer, showConnection, showState } from "./states.js";
import { openStream } from "./stream.js";
import { formatValue, useWords } from "./words.js";
import { closeWindow, countDown } from "./windows.js";

const data = JSON.parse(document.getElementById("live-data").textContent);
const announce = announcer(document.getElementById("announcer"));
const section = document.querySelector(".feed");
let status = document.querySelector(".live-head[data-hub]")?.dataset.status;
let live = false; // until then events are of before: the page was made later than they
let feed = null;
useWords(data.words);
keepTimes();
countDown(announce);
showDevices(data.hubs + data.hub, announce);
takeCommands();
if (section) {
  feed = new Feed(section, data.hubs, () => "", new Names(data.hubs, () => feed.renamed()));
}
if (document.querySelector("[data-late]")) {
  reloadDevices(0);
}

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
      const head = document.querySelector(".live-head[data-hub]");
      if (head) {
        showState(head, state);
        head.querySelector("h1 bdi").textContent = state.name || state.id;
      } else {
        connection(state.status === "online" ? "Live" : `The hub is ${state.status}: ${state.reason}`, state.status === "online" ? "good" : "bad");
      }
      if (status !== undefined && status !== state.status) {
        announce(`The hub is ${state.status}.`);
        reloadDevices();
      }
      status = state.status;
    },
    gap(hub) {
      feed?.add({ type: "portal.gap", hub_id: hub, device_id: null, time: new Date().toISOString(), data: {} });
      reloadDevices();
    },
    begin(since) {
      feed?.begin(since);
      live = false;
    },
    connection,
  },
  section ? 600 : 0,
);

function connection(text, how) {
  if (text === "Live" && !section && status === "offline") {
    return; // the page of a device says there that its hub is away
  }
  showConnection(text, how);
}

// take shows what an event changes. Values are shown at once; where a channel stands after a command only its hub knows, so it is asked.
function take({ type, device_id: device, data: said }) {
  switch (type) {
    case "channel.observed": {
      const channel = channelOf(cardOf(device), said.key, said.endpoint);
      if (!channel) {
        return;
      }
      channel.querySelector(".value bdi").textContent = formatValue(said.key, said.value, channel.dataset.unit);
      if (channel.dataset.desired !== "null" || channel.dataset.control) {
        askDevice(device, 200);
      }
      return;
    }
    case "channel.desired":
      askDevice(device, 50);
      askDevice(device, 12_000, "later"); // a command that was given up tells nobody
      askDevice(device, 45_000, "at last");
      return;
    case "device.available":
    case "device.unavailable":
      askDevice(device, 100);
      return;
    case "device.updated":
      reloadDevices();
      return;
    case "device.added":
      announce(`${said.name || "A device"} has joined.`);
      closeWindow("pairing", `${said.name || "A device"} has joined as device ${device}. Give it a name and a room on its own page.`);
      reloadDevices();
      return;
    case "device.forgotten":
      announce("A device has left.");
      closeWindow("removal", "The device has left.");
      reloadDevices();
  }
}
