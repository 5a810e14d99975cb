// Commands without reloading the page. Their results arrive on the event stream.

import { sessionEnded } from "./session.js";
import { textOf } from "./texts.js";

// After these statuses the hub may have run the command. A retry uses the same idempotency key, so
// that the hub runs it once.
const UNCERTAIN = [500, 502, 503, 504];

// inUse reports whether the user is about to use a control: a field has the focus, a confirmation
// is open, or input is not sent yet.
export function inUse(control) {
  if (control.contains(document.activeElement) && ["input", "select"].includes(document.activeElement.localName)) {
    return true;
  }
  if ([...control.querySelectorAll("option")].some((option) => option.selected !== option.defaultSelected)) {
    return true;
  }
  return control.querySelector("details[open]") !== null || [...control.querySelectorAll("input:not([type=hidden])")].some((input) => input.value !== input.defaultValue);
}

// submitCommands sends the forms of all controls, also of those that are added later.
// sent(form) is called after the hub has accepted a command.
export function submitCommands(sent) {
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("button[data-step]");
    if (button) {
      step(button.form.querySelector("input[type=number]"), Number(button.dataset.step));
    }
  });
  document.addEventListener("submit", (event) => {
    if (event.target.classList.contains("command")) {
      event.preventDefault();
      send(event.target, event.submitter, sent);
    }
  });
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    const guard = key === "Escape" && target.closest("details.guard[open]");
    if (guard) {
      guard.open = false;
      guard.querySelector("summary").focus();
    }
    const button = ["ArrowUp", "ArrowDown"].includes(key) && target.type === "number" && target.parentElement.querySelector("button[data-step]");
    if (button) {
      event.preventDefault();
      step(target, Math.abs(button.dataset.step) * (key === "ArrowUp" ? 1 : -1));
    }
  });
  document.addEventListener("input", ({ target }) => {
    const output = target.type === "range" && target.form.querySelector("output");
    if (output) {
      output.textContent = target.value;
    }
  });
}

// step changes a number by one step, within its bounds. An empty field begins at the lower bound.
function step(input, by) {
  const size = Math.abs(by);
  const low = input.min === "" ? -Infinity : Number(input.min);
  const high = input.max === "" ? Infinity : Number(input.max);
  const next = input.value === "" ? (input.min === "" ? 20 : low) : Math.round((Number(input.value) + by) / size) * size;
  input.value = String(Math.round(Math.min(high, Math.max(low, next)) * 100) / 100);
}

async function send(form, button, sent) {
  if (form.dataset.sending) {
    return; // pressed twice
  }
  const body = new URLSearchParams(new FormData(form, button));
  body.delete("idempotency_key");
  if (form.dataset.uncertain !== body.toString()) {
    form.dataset.key = `portal-${crypto.randomUUID()}`;
  }
  form.dataset.uncertain = body.toString();
  body.set("idempotency_key", form.dataset.key);
  const control = form.closest(".control");
  const problem = control.querySelector(".problem");
  const sending = control.querySelector(".sending");
  problem.hidden = true;
  form.dataset.sending = "yes";
  const slow = setTimeout(() => (sending.hidden = false), 300);
  const message = await post(form, body);
  clearTimeout(slow);
  sending.hidden = true;
  delete form.dataset.sending;
  if (message) {
    problem.setAttribute("role", "alert"); // here, since many empty ones on a page disturb
    problem.textContent = message;
    problem.hidden = false;
    return;
  }
  for (const input of form.querySelectorAll("input:not([type=hidden])")) {
    if (input.name === "other") {
      input.value = ""; // the reported value shows it
      input.closest("details").open = false;
    } else {
      input.defaultValue = input.value; // the input is sent
    }
  }
  for (const option of form.querySelectorAll("option")) {
    option.defaultSelected = option.selected;
  }
  sent(form);
  const details = form.closest("details");
  if (details) {
    const focused = form.contains(document.activeElement);
    details.open = false;
    if (focused) {
      details.querySelector("summary").focus();
    }
  }
}

// post sends a command. It returns an error message, "" for success.
async function post(form, body) {
  try {
    const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
    if (!UNCERTAIN.includes(response.status)) {
      delete form.dataset.uncertain;
    }
    if (response.redirected || response.status === 401) {
      sessionEnded();
      return textOf("command-session");
    }
    if (response.ok) {
      return "";
    }
    if (response.headers.get("Content-Type")?.startsWith("application/json")) {
      return (await response.json()).message;
    }
    return textOf("command-failed");
  } catch {
    return textOf("command-unreachable");
  }
}
