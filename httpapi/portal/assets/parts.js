// Reloads of parts of the page, for changes that no event describes.

const SOON = 300;
const LEAST = 3_000; // between two reloads

// depthOf returns the depth below /portal/ of the page that contains this relative address. Parts of
// a page are requested with it: the page of a rejected form is deeper than the others.
export const depthOf = (address) => address.split("../").length - 1;

// sent sends a form without leaving the page. It reports whether the service has accepted it.
export async function sent(form) {
  const response = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { Accept: "application/json" } }).catch(() => null);
  return response?.ok === true;
}

// sayFound announces what a form found, which its results would say at length. Call it once before, since
// screen readers announce changes of a status.
export function sayFound(form, text) {
  let status = form.querySelector("[role=status]");
  if (!status) {
    status = document.createElement("p");
    status.className = "hidden";
    status.setAttribute("role", "status");
    form.append(status);
  }
  status.textContent = text;
}

// reloader returns a function that reloads the elements with those ids soon. Calls during a reload
// lead to one more. done() is called after each reload that got the page.
export function reloader(ids, done = () => {}) {
  let timer = null;
  let again = false;
  function reload() {
    if (timer !== null) {
      again = true;
      return;
    }
    timer = setTimeout(async () => {
      again = false;
      const page = await fetch(location.href, { headers: { Accept: "text/html" } })
        .then(async (response) => (response.ok && !response.redirected ? new DOMParser().parseFromString(await response.text(), "text/html") : null))
        .catch(() => null);
      setTimeout(() => {
        timer = null;
        if (again) {
          reload();
        }
      }, LEAST);
      if (page && ids.every((id) => replace(id, page))) {
        done();
      }
    }, SOON);
  }
  return reload;
}

// replace replaces the content of an element by that of a new page. It returns false if the user is
// typing there: the next change reloads the element.
function replace(id, page) {
  const fresh = page.getElementById(id);
  const old = document.getElementById(id);
  if (!fresh || !old) {
    return true;
  }
  const { value: chosen } = old;
  const focused = old.contains(document.activeElement) && document.activeElement !== old ? document.activeElement : null;
  if (focused?.form) {
    return false;
  }
  old.replaceChildren(...fresh.childNodes);
  if (chosen) {
    old.value = chosen;
  }
  if (focused) {
    [...old.querySelectorAll("a")].find((link) => link.href === focused.href)?.focus({ preventScroll: true });
  }
  return true;
}
