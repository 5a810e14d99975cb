// The states of hubs, wherever the page shows one.

import { setTime } from "./ago.js";

const classes = { online: "good", offline: "bad", unknown: "wait" };

// showState writes a hub's state into the element of that hub; true when its status is another than before.
export function showState(element, state) {
  const before = element.dataset.status;
  const tag = element.querySelector(".tag");
  element.dataset.status = state.status;
  tag.textContent = state.status;
  tag.classList.remove(...Object.values(classes));
  tag.classList.add(classes[state.status]);
  const name = element.querySelector("a bdi");
  if (name && name.textContent !== (state.name || state.id)) {
    name.textContent = state.name || state.id;
  }
  setTime(element.querySelector("time"), state.since);
  element.querySelector(".reason").textContent = state.reason;
  return before !== state.status;
}

// showConnection says how the page's stream is doing; how is "good", "bad" or "".
export function showConnection(text, how) {
  const element = document.getElementById("connection");
  if (element.textContent !== text) {
    element.textContent = text;
  }
  element.classList.toggle("good", how === "good");
  element.classList.toggle("bad", how === "bad");
}

// announcer says what changed to those who do not see it: one sentence every few seconds, and no more than a number when much changes.
export function announcer(element) {
  let waiting = [];
  let timer = null;
  const say = () => {
    element.textContent = waiting.length > 3 ? `${waiting.length} hubs have changed their status.` : waiting.join(" ");
    waiting = [];
    timer = null;
  };
  return (text) => {
    waiting.push(text);
    timer ??= setTimeout(say, 3000);
  };
}
