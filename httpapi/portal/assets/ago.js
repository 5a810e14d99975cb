// Relative times, updated as time passes.

import { textOf } from "./texts.js";

// Formats are made at their first use: each takes tens of milliseconds while a page opens on a slow phone.
let exact, relative;

// exactTime returns a Date as pages show it to those who point at a time.
export function exactTime(at) {
  exact ??= new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "medium", timeZone: "UTC" });
  return `${exact.format(at)} UTC`;
}

// ago returns a relative time, as the server formats it.
function ago(at, now) {
  const seconds = Math.abs(now - at) / 1000;
  const ahead = at > now;
  let length;
  if (seconds < 45 && !ahead) {
    return textOf("just-now");
  } else if (seconds < 90 * 60) {
    length = [Math.max(1, Math.round(seconds / 60)), "minute"];
  } else if (seconds < 36 * 3600) {
    length = [Math.round(seconds / 3600), "hour"];
  } else if (seconds < 31 * 86400) {
    length = [Math.round(seconds / 86400), "day"];
  } else {
    return new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
  }
  relative ??= new Intl.RelativeTimeFormat("en", { numeric: "always" });
  return relative.format(ahead ? length[0] : -length[0], length[1]);
}

// setTime sets the time of a <time> element to one that has passed.
export function setTime(element, at) {
  element.dateTime = at;
  element.title = exactTime(new Date(at));
  element.textContent = textFor(element, Date.now());
}

// textFor returns the text of a <time> element. Clocks differ: what has happened is never ahead.
function textFor({ dateTime, dataset }, now) {
  const at = Date.parse(dateTime);
  return ago("ahead" in dataset ? at : Math.min(at, now), now);
}

// updateTimes updates all relative times twice a minute.
export function updateTimes() {
  setInterval(() => {
    if (document.hidden) {
      return;
    }
    const now = Date.now();
    for (const element of document.querySelectorAll("time[title]:not([data-exact])")) {
      const text = textFor(element, now);
      if (element.textContent !== text) {
        element.textContent = text;
      }
    }
  }, 30_000);
}
