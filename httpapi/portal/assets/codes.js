// Door codes that wait for their lock: the page looks at them again until they are there.

const FIRST = 2_000; // the pause before the next look; it doubles, since a hub may be away for days
const MOST = 30_000;

const announcer = document.getElementById("announcer");
const cells = (page) => new Map(Array.from(page.querySelectorAll("[data-code]"), (cell) => [cell.dataset.code, cell]));
let pause = FIRST;

async function look() {
  const waiting = [...cells(document).values()].filter((cell) => cell.querySelector("[data-waits]"));
  if (waiting.length > 0 && !document.hidden) {
    const address = new URL(location.href);
    address.searchParams.delete("ask"); // the locks are not asked again
    const text = await fetch(address, { headers: { Accept: "text/html" } })
      .then((response) => (response.ok ? response.text() : ""))
      .catch(() => "");
    const page = new DOMParser().parseFromString(text, "text/html");
    if (page.getElementById("codes")) {
      show(waiting, cells(page));
    }
  }
  setTimeout(look, pause);
  pause = Math.min(pause * 2, MOST);
}

// show shows the states of the codes that waited. A code that has left its lock leaves the list.
function show(waiting, fresh) {
  for (const cell of waiting) {
    const now = fresh.get(cell.dataset.code);
    const row = cell.closest("tr");
    if (now?.textContent === cell.textContent) {
      continue;
    }
    const [person, door] = row.querySelectorAll("bdi");
    announcer.textContent = `${person.textContent}, ${door.textContent}: ${now ? now.textContent : announcer.dataset.gone}`;
    if (now) {
      cell.replaceChildren(...now.childNodes);
    } else {
      row.remove();
    }
    pause = FIRST;
  }
}

setTimeout(look, pause);
