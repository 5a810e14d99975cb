// Commands without loading the page. What becomes of them comes by the stream.

// After these the hub may have acted, or not yet: the same press again is the same command, which the hub runs once.
const UNSETTLED = [500, 502, 503, 504];

// inUse says whether somebody is about to use a control: the focus is in a field of it, it is open, or something was typed that was not sent.
export function inUse(control) {
  if (control.contains(document.activeElement) && document.activeElement.localName === "input") {
    return true;
  }
  return control.querySelector("details[open]") !== null || [...control.querySelectorAll("input:not([type=hidden])")].some((input) => input.value !== input.defaultValue);
}

// takeCommands sends the forms of controls, wherever on the page they are or will be.
export function takeCommands() {
  document.addEventListener("submit", (event) => {
    if (event.target.classList.contains("command")) {
      event.preventDefault();
      send(event.target, event.submitter);
    }
  });
  document.addEventListener("input", ({ target }) => {
    const output = target.type === "range" && target.form.querySelector("output");
    if (output) {
      output.textContent = target.value;
    }
  });
}

async function send(form, button) {
  if (form.dataset.sending) {
    return; // a second press of an impatient finger
  }
  const body = new URLSearchParams(new FormData(form, button));
  body.delete("idempotency_key");
  if (form.dataset.unsettled !== body.toString()) {
    form.dataset.key = `portal-${crypto.randomUUID()}`;
  }
  form.dataset.unsettled = body.toString();
  body.set("idempotency_key", form.dataset.key);
  const control = form.closest(".control");
  const problem = control.querySelector(".problem");
  const sending = control.querySelector(".sending");
  problem.hidden = true;
  form.dataset.sending = "yes";
  const slow = setTimeout(() => (sending.hidden = false), 300);
  const message = await ask(form, body);
  clearTimeout(slow);
  sending.hidden = true;
  delete form.dataset.sending;
  if (message) {
    problem.textContent = message;
    problem.hidden = false;
    return;
  }
  for (const input of form.querySelectorAll("input:not([type=hidden])")) {
    if (input.list) {
      input.value = ""; // its placeholder says what there is
    } else {
      input.defaultValue = input.value; // what was typed is sent
    }
  }
  const details = form.closest("details");
  if (details) {
    const focused = form.contains(document.activeElement);
    details.open = false;
    if (focused) {
      details.querySelector("summary").focus();
    }
  }
}

// ask sends a command and gives what went wrong, "" when nothing did.
async function ask(form, body) {
  try {
    const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
    if (!UNSETTLED.includes(response.status)) {
      delete form.dataset.unsettled;
    }
    if (response.redirected) {
      return "You are signed out. Load the page again to sign in.";
    }
    if (response.ok) {
      return "";
    }
    if (response.headers.get("Content-Type")?.startsWith("application/json")) {
      return (await response.json()).message;
    }
    return "That did not work. Load the page again.";
  } catch {
    return "The service cannot be reached. Try again in a moment.";
  }
}
