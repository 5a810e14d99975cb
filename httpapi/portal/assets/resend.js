// Forms are not lost while the service is out of reach: before a form is sent, the page asks whether
// the service answers. If it does not, the form stays as it is and can be sent again. What was typed
// in the page's other forms is there again on its next load.

import { restoreOthers, saveOthers } from "./draft.js";

const data = document.getElementById("form-texts");
const texts = data ? JSON.parse(data.textContent) : {};
const PATIENCE = 5_000; // how long the service may take to answer

// reachable reports whether the service answers. It asks for this file, without the cache.
async function reachable() {
  try {
    const response = await fetch(import.meta.url, { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    return response.status < 500;
  } catch {
    return false;
  }
}

// notSent says at the form that it was not sent, with a button that sends it again.
function notSent(form, submitter) {
  let notice = form.querySelector(".not-sent");
  if (!notice) {
    notice = document.createElement("p");
    notice.className = "notice wait not-sent";
    notice.setAttribute("role", "alert");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain small";
    button.textContent = texts.again;
    button.addEventListener("click", () => form.requestSubmit(submitter));
    const text = document.createElement("span");
    notice.append(text, " ", button);
    form.append(notice);
  }
  const text = notice.querySelector("span");
  text.textContent = ""; // so that a screen reader says it again
  text.textContent = texts.kept;
}

document.addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  if (!event.defaultPrevented && (form.method === "get" || form.dataset.checked)) {
    saveOthers(form); // a form on the same page may be half typed
  }
  if (form.method !== "post" || event.defaultPrevented || form.dataset.checked || form.classList.contains("command")) {
    return; // commands.js sends commands
  }
  event.preventDefault();
  if (form.dataset.checking) {
    return; // pressed twice
  }
  form.dataset.checking = "yes";
  const answered = await reachable();
  delete form.dataset.checking;
  if (!answered) {
    notSent(form, submitter);
    return;
  }
  form.querySelector(".not-sent")?.remove();
  form.dataset.checked = "yes";
  form.requestSubmit(submitter?.isConnected ? submitter : undefined);
  setTimeout(() => delete form.dataset.checked, 1000); // a page that is shown again, by the Back button
});

restoreOthers();
