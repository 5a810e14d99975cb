// An outage: the page says that its values are old and does not send commands until the connection
// is back. What was typed is kept.

import { textOf } from "./texts.js";

// beginOutage shows since when the page's values are old. retry() tries to connect at once.
export function beginOutage(since, retry) {
  if (document.getElementById("outage")) {
    return;
  }
  const banner = document.createElement("div");
  banner.id = "outage";
  banner.className = "notice wait";
  banner.setAttribute("role", "alert");
  const text = document.createElement("span");
  text.id = "outage-text";
  text.textContent = textOf("outage", { time: new Date(since).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }) });
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain small";
  button.textContent = textOf("outage-retry");
  button.addEventListener("click", retry);
  banner.append(text, " ", button);
  document.getElementById("main").prepend(banner);
  document.body.classList.add("outage");
  for (const control of document.querySelectorAll("form.command button:not(:disabled)")) {
    control.disabled = true;
    control.dataset.outage = "";
    control.setAttribute("aria-describedby", text.id);
    control.title = textOf("outage-control");
  }
}

// endOutage shows that the page is up to date again. It returns whether there was an outage.
export function endOutage() {
  const banner = document.getElementById("outage");
  if (!banner) {
    return false;
  }
  banner.remove();
  document.body.classList.remove("outage");
  for (const control of document.querySelectorAll("[data-outage]")) {
    control.disabled = false;
    delete control.dataset.outage;
    control.removeAttribute("aria-describedby");
    control.removeAttribute("title");
  }
  return true;
}
