// The windows of pairing and removal.

import { textOf } from "./texts.js";

// countDown shows the remaining time of open windows.
export function countDown(announce) {
  for (const box of document.querySelectorAll("[data-left]")) {
    const until = performance.now() / 1000 + Number(box.dataset.left); // the browser's clock may differ from the service's
    const timer = setInterval(() => {
      const left = Math.ceil(until - performance.now() / 1000);
      if (!box.dataset.left) {
        clearInterval(timer);
      } else if (left > 0) {
        box.querySelector(".countdown").textContent = textOf("window-left", { seconds: left });
      } else {
        closeWindow(box.dataset.window, textOf(`${box.dataset.window}-timed-out`));
        announce(textOf(`${box.dataset.window}-timed-out`));
      }
    }, 1000);
  }
}

// closeWindow shows the outcome in place of a window, and removes the window from the address, so
// that a reload does not show it again.
// link, if given, is shown after it.
export function closeWindow(name, outcome, link) {
  const box = document.querySelector(`[data-window="${name}"]`);
  if (!box?.dataset.left) {
    return;
  }
  delete box.dataset.left;
  box.querySelector("h2").textContent = textOf(`${name}-closed`);
  box.querySelector(".what").textContent = outcome;
  if (link) {
    box.querySelector(".what").append(" ", link);
  }
  box.querySelector("form").remove();
  const query = new URLSearchParams(location.search);
  query.delete(name);
  history.replaceState(null, "", `${location.pathname}${query.size > 0 ? `?${query}` : ""}${location.hash}`);
}
