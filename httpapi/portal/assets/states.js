// The display of hub states and of the connection.

import { setTime } from "./ago.js";
import { textOf } from "./texts.js";

const classes = { online: "good", offline: "wait", unknown: "none", reconnecting: "wait" };

// shownStatus returns the status that is displayed: a hub that is expected back after a restart of the
// service is reconnecting, until the time that the state has.
export function shownStatus(state) {
  return Date.parse(state.reconnecting_until) > Date.now() ? "reconnecting" : state.status;
}

const timers = new WeakMap(); // of the ends of reconnecting, by element

// showState shows a hub's state in the hub's element. It returns whether the status changed.
export function showState(element, state) {
  const before = element.dataset.status;
  const tag = element.querySelector(".tag");
  const shown = shownStatus(state);
  clearTimeout(timers.get(element));
  if (shown === "reconnecting") {
    const left = Date.parse(state.reconnecting_until) - Date.now();
    timers.set(element, setTimeout(() => showState(element, state), left + 1000));
  }
  element.dataset.status = state.status;
  tag.textContent = textOf(`status ${shown}`);
  tag.classList.remove(...Object.values(classes));
  tag.classList.add(classes[shown]);
  const name = element.querySelector("a bdi");
  if (name && name.textContent !== (state.name || state.id)) {
    name.textContent = state.name || state.id;
  }
  const time = element.querySelector("time");
  if (Math.floor(Date.parse(state.since) / 1000) !== Math.floor(Date.parse(time.dateTime) / 1000)) {
    setTime(time, state.since);
  }
  element.querySelector(".reason").textContent = state.reason;
  return before !== state.status;
}

// showConnection shows the state of the page's stream. how is "good", "bad" or "".
export function showConnection(text, how) {
  const element = document.getElementById("connection");
  if (element.textContent !== text) {
    element.textContent = text;
  }
  element.classList.toggle("good", how === "good");
  element.classList.toggle("bad", how === "bad");
}

// announcer returns a function that announces changes to screen readers, at most every three
// seconds. It only counts more than three changes.
export function announcer(element) {
  let waiting = [];
  let timer = null;
  const announce = () => {
    element.textContent = waiting.length > 3 ? textOf("hubs-changed", { number: waiting.length }) : waiting.join(" ");
    waiting = [];
    timer = null;
  };
  return (text) => {
    waiting.push(text);
    timer ??= setTimeout(announce, 3000);
  };
}
