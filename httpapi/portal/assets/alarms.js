// Alarms of the organization while a page is open that does not list them: their number is shown in
// the navigation and in the title, and a new one as a notice.

const PERIOD = 10_000; // between two looks

const data = document.getElementById("form-texts");
const texts = JSON.parse(data.textContent);
const dashboard = document.querySelector("nav a[data-alarms]");
const badges = document.querySelectorAll(".badge");
const plainTitle = document.title;
const listed = document.getElementById("attention") !== null; // the page has a list of its own
let known = null; // the alarms of the last look; null before the first

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

async function look() {
  if (document.hidden) {
    return;
  }
  const part = await fetch(dashboard.dataset.alarms, { headers: { Accept: "text/html" } })
    .then((response) => (response.ok && !response.redirected ? response.text() : null))
    .catch(() => null);
  const list = part && new DOMParser().parseFromString(part, "text/html").getElementById("attention");
  if (!list) {
    return;
  }
  const alarms = Number(list.dataset.alarms);
  const shown = document.getElementById("attention");
  if (shown && !shown.dataset.address.includes("?") && shown.dataset.counts !== list.dataset.counts) {
    document.dispatchEvent(new Event("alarms")); // the dashboard's own list shows the same counts
    return;
  }
  for (const badge of badges) {
    badge.hidden = alarms === 0;
    badge.firstElementChild.textContent = alarms;
    badge.lastElementChild.textContent = list.dataset.counts;
  }
  if (!listed) {
    document.title = alarms === 0 ? plainTitle : `(${list.dataset.counts}) ${plainTitle}`;
  }
  const rows = [...list.querySelectorAll('[data-severity="alarm"]')].filter((row) => !row.closest(".seen"));
  const fresh = known && rows.filter((row) => !known.has(row.dataset.condition));
  known = new Set(rows.map((row) => row.dataset.condition));
  if (fresh?.length > 0 && !document.getElementById("attention")?.querySelector(`[data-condition="${CSS.escape(fresh[0].dataset.condition)}"]`)) {
    show(fresh[0], alarms);
  } else if (alarms === 0) {
    document.getElementById("new-alarm")?.remove();
  }
}

// show shows a notice with a new alarm, and how many others there are, as the badge counts them.
function show(row, count) {
  const [what, where] = row.querySelectorAll(".what p");
  const notice = document.createElement("p");
  notice.id = "new-alarm";
  notice.className = "notice bad";
  notice.setAttribute("role", "alert");
  const title = document.createElement("strong");
  title.textContent = what.textContent;
  const link = document.createElement("a");
  link.href = dashboard.href;
  link.textContent = texts.alarms;
  const place = [...where.querySelectorAll("bdi")].map((name) => name.textContent).join(" › ");
  notice.append(title, ` · ${place}`, count > 1 ? `, ${fill(texts.more, { number: count - 1 })}` : "", " ", link);
  document.getElementById("new-alarm")?.remove();
  document.getElementById("main").prepend(notice);
}

look();
setInterval(look, PERIOD);
document.addEventListener("visibilitychange", look);
