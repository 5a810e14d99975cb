// The API reference: search, deep links, and requests that are sent from the page. The API key is in its field and nowhere else.
"use strict";

const shownOutput = 200_000; // the most characters of an answer that the page shows
const key = document.querySelector("#api-key");
for (const part of document.querySelectorAll(".needs-script")) {
  part.hidden = false;
}
document.querySelector("#key-form").addEventListener("submit", (event) => event.preventDefault());
document.querySelector("#forget").addEventListener("click", () => {
  key.value = "";
  key.focus();
});

// A link to an operation or a schema opens it.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", openTarget);
document.addEventListener("click", (event) => {
  // Also for a link to where the page already is.
  if (event.target.closest?.("a[href^='#']")?.hash === location.hash) {
    openTarget();
  }
});
openTarget();

// The search shows the operations that have all of its words.
const search = document.querySelector("#search");
const operations = [...document.querySelectorAll("details.operation")].map((operation) => ({
  parts: [operation, document.querySelector(`.contents a[href="#${operation.id}"]`).parentElement],
  text: `${operation.id} ${operation.querySelector("summary").textContent}`.toLowerCase(),
}));
search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/);
  let found = 0;
  for (const { parts, text } of operations) {
    const matches = words.every((word) => text.includes(word));
    found += matches;
    for (const part of parts) {
      part.hidden = !matches;
    }
  }
  for (const group of document.querySelectorAll(".tag-group")) {
    group.hidden = group.querySelector("details.operation:not([hidden])") === null;
  }
  document.querySelector("#none").textContent = found > 0 ? "" : "No operation has these words.";
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, textarea, select")) {
    event.preventDefault();
    contents.open = true;
    search.focus();
  }
});

// requestOf returns the request that a form describes. Header values are UTF-8, which fetch takes as one character a byte.
function requestOf(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = new Map();
  for (const input of form.querySelectorAll("[data-in]")) {
    const value = input.value.trim();
    if (value === "") {
      continue;
    }
    if (input.dataset.in === "path") {
      path = path.replace(`{${input.name}}`, encodeURIComponent(value));
    } else if (input.dataset.in === "query") {
      for (const one of "many" in input.dataset ? value.split(/\s*,\s*/) : [value]) {
        query.append(input.name, one);
      }
    } else {
      headers.set(input.name, value);
    }
  }
  const body = form.querySelector("textarea")?.value;
  if (body !== undefined) {
    headers.set("Content-Type", "application/json");
  }
  const url = new URL("." + path, location.href);
  url.search = query;
  return { method: form.dataset.method, url, headers, body, once: form.querySelector("[name='Idempotency-Key']") !== null };
}

// quote returns a text as one word of a shell.
const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

// curlOf returns a request as a command, with the key in a variable as in the guides.
function curlOf(form) {
  const { method, url, headers, body, once } = requestOf(form);
  const words = ["curl --no-buffer"];
  if (method !== "GET") {
    words.push(`--request ${method}`);
  }
  if ("keyed" in form.dataset) {
    words.push(`--header "Authorization: Bearer $HUBCLOUD_API_KEY"`);
  }
  if (once && !headers.has("Idempotency-Key")) {
    words.push(`--header "Idempotency-Key: $(date +%s%N)"`);
  }
  for (const [name, value] of headers) {
    words.push(`--header ${quote(`${name}: ${value}`)}`);
  }
  if (body !== undefined) {
    words.push(`--data ${quote(body)}`);
  }
  words.push(quote(url.href));
  return words.join(" \\\n  ");
}

// newKey returns an idempotency key. Pages over plain HTTP have no crypto.randomUUID.
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

// readable returns JSON with a field a line, and any other text as it is.
function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

// explain says what an answer with an error means.
function explain(text, keyed) {
  try {
    const { type, message, request_id: id } = JSON.parse(text).error;
    const hint = type === "unauthenticated" && keyed && key.value === "" ? " Enter an API key at the top of the page." : "";
    return `${type}: ${message}.${hint} Request ${id}.`.replace("..", ".");
  } catch {
    return "";
  }
}

// send sends the request of a form and shows the answer as it comes.
async function send(form, stopped) {
  const result = form.querySelector(".result");
  const [status, received, file, output] = [".status", ".received", ".file", ".output"].map((part) => result.querySelector(part));
  const box = output.closest(".code");
  const show = (text, bad = false) => {
    status.textContent = text;
    status.classList.toggle("bad", bad);
  };
  result.hidden = false;
  received.hidden = file.hidden = box.hidden = true;
  output.textContent = "";
  show("Sending …");
  const { method, url, headers, body, once } = requestOf(form);
  if (once && !headers.has("Idempotency-Key")) {
    headers.set("Idempotency-Key", newKey());
  }
  if ("keyed" in form.dataset && key.value !== "") {
    headers.set("Authorization", `Bearer ${key.value.trim()}`);
  }
  const bytes = new TextEncoder();
  const begun = performance.now();
  const sent = [...headers].map(([name, value]) => [name, String.fromCharCode(...bytes.encode(value))]);
  const response = await fetch(url, { method, headers: sent, body, signal: stopped, cache: "no-store", credentials: "omit" });
  const type = response.headers.get("Content-Type") ?? "";
  received.querySelector("pre").textContent = [...response.headers].map(([name, value]) => `${name}: ${value}`)
    .concat(once ? ["", `sent Idempotency-Key: ${headers.get("Idempotency-Key")}`] : []).join("\n");
  received.hidden = false;
  const first = `${response.status} ${response.statusText}`.trim();
  const time = () => `${Math.round(performance.now() - begun)} ms`;
  if (type.startsWith("text/event-stream")) {
    show(`${first}, open`);
    box.hidden = false;
    const decoder = new TextDecoder();
    const scrolled = box.querySelector("pre");
    try {
      for (const reader = response.body.getReader(); ;) {
        const { done, value } = await reader.read();
        if (done) {
          break;
        }
        output.textContent = (output.textContent + decoder.decode(value, { stream: true })).slice(-shownOutput);
        scrolled.scrollTop = scrolled.scrollHeight;
      }
    } finally {
      show(`${first}, ${stopped.aborted ? "stopped" : "ended by the service"} after ${time()}`);
    }
    return;
  }
  const content = await response.blob();
  const took = time();
  const isText = /^(text\/|application\/(json|yaml|.*\+json))/.test(type);
  const text = isText ? await content.text() : "";
  const problem = response.ok ? "" : explain(text, "keyed" in form.dataset);
  show(`${first}${problem && ` · ${problem}`} · ${took}, ${content.size.toLocaleString("en")} bytes`, !response.ok);
  box.hidden = text === "";
  output.textContent = type.startsWith("application/json") ? readable(text) : text.slice(0, shownOutput);
  if (content.size > 0 && !type.startsWith("application/json")) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content);
    link.download = url.pathname.split("/").pop();
    link.textContent = `Save ${link.download}`;
    file.replaceChildren(link, text.length > shownOutput ? ` (the first ${shownOutput.toLocaleString("en")} characters are shown)` : "");
    file.hidden = false;
  }
}

for (const form of document.querySelectorAll("form.try")) {
  const body = form.querySelector("textarea");
  const stop = form.querySelector(".stop");
  const button = form.querySelector(".primary");
  const curl = form.querySelector(".curl");
  form.querySelector(".examples")?.addEventListener("input", (event) => { body.value = event.target.value; });
  curl.textContent = curlOf(form);
  form.addEventListener("input", () => { curl.textContent = curlOf(form); });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const request = new AbortController();
    stop.onclick = () => request.abort();
    stop.hidden = !(button.disabled = true);
    try {
      await send(form, request.signal);
    } catch (error) {
      if (!request.signal.aborted) {
        const status = form.querySelector(".status");
        status.textContent = `No answer: the service cannot be reached, or the connection broke (${error.message}).`;
        status.classList.add("bad");
      } else if (!form.querySelector(".status").textContent.includes("stopped")) {
        form.querySelector(".status").textContent = "Stopped.";
      }
    } finally {
      stop.hidden = !(button.disabled = false);
    }
  });
}
