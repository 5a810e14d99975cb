// The windows in which devices join and leave.

const NOTHING = {
  pairing: "The window has closed, and no device has joined. Open it again when you have the device at hand.",
  removal: "The window has closed, and no device has left.",
};

// countDown shows how long windows are still open.
export function countDown(announce) {
  for (const box of document.querySelectorAll("[data-left]")) {
    const until = performance.now() / 1000 + Number(box.dataset.left); // by a clock of its own: that of the service may be another
    const timer = setInterval(() => {
      const left = Math.ceil(until - performance.now() / 1000);
      if (!box.dataset.left) {
        clearInterval(timer);
      } else if (left > 0) {
        box.querySelector(".countdown").textContent = `in ${left} s`;
      } else {
        closeWindow(box.dataset.window, NOTHING[box.dataset.window]);
        announce(NOTHING[box.dataset.window]);
      }
    }, 1000);
  }
}

// closeWindow says in the place of a window what came of it, and takes it out of the address, so that it does not come back.
export function closeWindow(name, outcome) {
  const box = document.querySelector(`[data-window="${name}"]`);
  if (!box?.dataset.left) {
    return;
  }
  delete box.dataset.left;
  box.querySelector("h2").textContent = name === "pairing" ? "Pairing is closed" : "Removal is closed";
  box.querySelector(".what").textContent = outcome;
  box.querySelector("form").remove();
  const query = new URLSearchParams(location.search);
  query.delete(name);
  history.replaceState(null, "", `${location.pathname}${query.size > 0 ? `?${query}` : ""}${location.hash}`);
}
