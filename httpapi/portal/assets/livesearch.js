// A page with a form that finds something: what is chosen shows at once, and stays in the address.

import { sayFound } from "./parts.js";

const form = document.querySelector("form[data-results]");
let asked = 0;
let timer = null;

async function find() {
  const mine = ++asked;
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  const address = new URL(`?${query}`, location.href);
  const page = await fetch(address, { headers: { Accept: "text/html" } })
    .then(async (response) => (response.ok && !response.redirected ? new DOMParser().parseFromString(await response.text(), "text/html") : null))
    .catch(() => null);
  if (page && mine === asked) {
    const { results } = form.dataset;
    document.getElementById(results).replaceChildren(...page.getElementById(results).childNodes);
    sayFound(form, document.getElementById("found").textContent);
    document.dispatchEvent(new Event("tables"));
    history.replaceState(null, "", address);
  }
}

sayFound(form, "");
form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(find, 150);
});
