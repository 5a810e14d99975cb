// The search over everything: results while a person types, on its page and in a dialog that "/" and
// Ctrl-K open on every page.

import { sayFound } from "./parts.js";
import { textOf } from "./texts.js";

const PAUSE = 30; // after a key, before the results are loaded

const link = document.querySelector(".search-link");
let palette = null;

// watch loads the results of a search form while a person types.
function watch(form, results, shared) {
  const input = form.querySelector("input");
  let timer = null;
  let asked = 0;
  sayFound(form, "");
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++asked;
      const address = new URL(form.action);
      address.searchParams.set("q", input.value.trim());
      const text = await fetch(address, { headers: { Accept: "text/html" } })
        .then((response) => (response.ok && !response.redirected ? response.text() : null))
        .catch(() => null);
      const fresh = text && new DOMParser().parseFromString(text, "text/html").getElementById("results");
      if (fresh && mine === asked) {
        show(results, fresh, address);
        const { length: number } = results.querySelectorAll("a");
        sayFound(form, number > 0 ? textOf("found", { number }) : results.textContent);
        if (shared) {
          history.replaceState(null, "", address);
        }
      }
    }, PAUSE);
  });
  const move = (pressed) => {
    const links = [input, ...results.querySelectorAll("a")];
    const next = links.indexOf(document.activeElement) + { ArrowDown: 1, ArrowUp: -1 }[pressed.key];
    if (links[next]) {
      pressed.preventDefault();
      links[next].focus();
    }
  };
  form.addEventListener("keydown", move);
  results.addEventListener("keydown", move);
  form.addEventListener("submit", (sent) => {
    const first = results.querySelector("a");
    if (first && !shared) {
      sent.preventDefault();
      first.click();
    }
  });
}

// show shows new results. Their links are relative to the search page.
function show(results, fresh, page) {
  for (const found of fresh.querySelectorAll("a")) {
    found.href = new URL(found.getAttribute("href"), page).href;
  }
  results.replaceChildren(...fresh.childNodes);
}

async function openPalette() {
  if (!palette) {
    const text = await fetch(link.href, { headers: { Accept: "text/html" } })
      .then((response) => (response.ok && !response.redirected ? response.text() : null))
      .catch(() => null);
    const page = text && new DOMParser().parseFromString(text, "text/html");
    const form = page?.querySelector("form.search");
    if (!form) {
      location.href = link.href;
      return;
    }
    palette = document.createElement("dialog");
    palette.className = "palette";
    palette.setAttribute("aria-label", form.getAttribute("aria-label"));
    form.action = link.href;
    palette.append(form, page.getElementById("results"));
    document.body.append(palette);
    watch(form, palette.querySelector(".results"), false);
    palette.addEventListener("click", (pressed) => pressed.target === palette && palette.close());
  }
  if (!palette.open) {
    palette.showModal();
    palette.querySelector("input").select();
  }
}

const own = document.getElementById("search")?.form;
if (own) {
  watch(own, document.getElementById("results"), true);
}

document.addEventListener("keydown", (pressed) => {
  const typing = pressed.target.closest("input, select, textarea, [contenteditable]");
  const slash = pressed.key === "/" && !typing && !pressed.ctrlKey && !pressed.metaKey && !pressed.altKey;
  if (slash || (pressed.key.toLowerCase() === "k" && (pressed.ctrlKey || pressed.metaKey))) {
    pressed.preventDefault();
    if (own) {
      own.querySelector("input").select();
    } else {
      openPalette();
    }
  }
});
