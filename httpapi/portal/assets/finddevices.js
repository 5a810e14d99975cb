// The page that finds devices: what is chosen shows at once, and stays in the address.

const form = document.getElementById("find-devices");
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
    document.getElementById("found-devices").replaceChildren(...page.getElementById("found-devices").childNodes);
    document.dispatchEvent(new Event("tables"));
    history.replaceState(null, "", address);
  }
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(find, 150);
});
