// Relative times, updated as time passes.

const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "medium", timeZone: "UTC" });

const count = (n, unit) => (n === 1 ? `1 ${unit}` : `${n} ${unit}s`);

// ago returns a relative time, as the server formats it.
export function ago(at, now = Date.now()) {
  const seconds = Math.abs(now - at) / 1000;
  const ahead = at > now;
  let text;
  if (seconds < 45 && !ahead) {
    return "just now";
  } else if (seconds < 90 * 60) {
    text = count(Math.max(1, Math.round(seconds / 60)), "minute");
  } else if (seconds < 36 * 3600) {
    text = count(Math.round(seconds / 3600), "hour");
  } else if (seconds < 31 * 86400) {
    text = count(Math.round(seconds / 86400), "day");
  } else {
    return new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
  }
  return ahead ? `in ${text}` : `${text} ago`;
}

// setTime sets the time of a <time> element.
export function setTime(element, at) {
  element.dateTime = at;
  element.title = `${exact.format(new Date(at))} UTC`;
  element.textContent = ago(Date.parse(at));
}

// updateTimes updates all relative times twice a minute.
export function updateTimes() {
  setInterval(() => {
    if (document.hidden) {
      return;
    }
    const now = Date.now();
    for (const element of document.querySelectorAll("time[title]:not([data-exact])")) {
      const text = ago(Date.parse(element.dateTime), now);
      if (element.textContent !== text) {
        element.textContent = text;
      }
    }
  }, 30_000);
}
