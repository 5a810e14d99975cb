// The page's event stream. It reconnects until the page is closed, and posts the position in the
// organization's feed, so that each event arrives once. EventSource cannot post, and needs a
// listener for every event type.

import { beginOutage, endOutage } from "./outage.js";
import { sessionEnded } from "./session.js";
import { textOf } from "./texts.js";

const SILENCE = 90_000; // without data for this long the connection is dead
const FIRST_PAUSE = 500; // before the first reconnection; doubled after each failure
const LONGEST_PAUSE = 15_000;
const OUTAGE_PAUSE = 1_500; // the longest pause while the service does not answer: the page is live soon after it does
const LONG_OUTAGE = 600_000; // after this time the pauses get longer
const HIDDEN_LIMIT = 20_000; // a hidden page disconnects after this time: a browser has six connections for all its tabs
const LONGEST_ABSENCE = 300_000; // after a longer absence the page does not catch up: it may have missed very many events
const GRACE = 2_000; // a shorter interruption is not shown: streams end every quarter of an hour
const TICK = 5_000;
const SLEEP = 30_000; // a longer time between two ticks means that the computer slept: the connection is dead

// The characters that set the direction of the text after them, also escaped in JSON. An element
// <bdi> does not hold what a text never ends.
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|(?<!\\)((?:\\\\)*)\\u(?:061c|200[ef]|202[a-e]|206[6-9])/gi;

// The names of the texts of a stream that ends and does not reconnect.
const ENDED = {
  out: "stream-signed-out",
  gone: "stream-no-member",
  released: "stream-released",
  forged: "stream-signed-in-anew",
};

// openStream follows the events of data.hub, of the hubs at data.site, or of all hubs if both are
// empty. The first stream begins up to `recent` seconds ago. handlers has
//   event(envelope)        for each event of a hub,
//   states({whole, hubs})  for hub states: all of them, or those that changed,
//   gap(envelope)          when events of a hub are gone,
//   begin(since)           when all events since that time are skipped after a long absence,
//   now()                  when the backlog is complete,
//   back()                 when the connection is back after an outage that the page showed; optional,
//   connection(text, how)  for the state of the connection; how is "good", "bad" or "".
export function openStream(data, handlers, recent) {
  let position = ""; // of the last event; "" before the first stream
  let pause = FIRST_PAUSE;
  let receivedAt = Date.now();
  let disconnect = null; // ends the connection
  let wake = null; // ends sleep early
  let warning = null; // the timer that shows the interruption
  let answered = true; // the service has answered the last request

  function report(text, how) {
    clearTimeout(warning);
    warning = null;
    handlers.connection(text, how);
    if (endOutage()) {
      handlers.back?.();
    }
  }

  // warn shows the interruption. The page shows values as old only if it had any.
  function warn() {
    handlers.connection(textOf("reconnecting"), "");
    if (position !== "") {
      beginOutage(receivedAt, () => wake?.());
    }
  }

  // sleep resolves after a pause, or when wake is called.
  const sleep = (pause) =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, pause);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  window.addEventListener("online", () => wake?.());
  window.addEventListener("offline", () => disconnect?.());
  document.addEventListener("visibilitychange", () => !document.hidden && wake?.());
  let tickedAt = Date.now();
  setInterval(() => {
    if (Date.now() - tickedAt > SLEEP && !document.hidden) {
      disconnect?.();
      wake?.();
    }
    tickedAt = Date.now();
  }, TICK);

  async function connect() {
    const abort = new AbortController();
    disconnect = () => abort.abort();
    let watchdog;
    const watch = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), SILENCE);
    };
    const received = () => {
      receivedAt = Date.now();
      watch();
    };
    let hideTimer;
    const watchVisibility = () => {
      clearTimeout(hideTimer);
      if (document.hidden) {
        hideTimer = setTimeout(() => abort.abort(), HIDDEN_LIMIT);
      }
    };
    const since = receivedAt;
    if (position !== "" && Date.now() - since > LONGEST_ABSENCE) {
      position = "";
      handlers.begin(since);
    }
    watch();
    watchVisibility();
    document.addEventListener("visibilitychange", watchVisibility);
    try {
      const response = await fetch(data.stream, {
        method: "POST",
        headers: { Accept: "text/event-stream" },
        body: new URLSearchParams({
          form_token: data.form_token,
          site: data.site,
          hub: data.hub,
          recent: String(recent),
          position,
        }),
        signal: abort.signal,
      });
      answered = ![502, 503, 504].includes(response.status) || response.headers.has("Retry-After");
      if (response.redirected || response.status === 401) {
        return ENDED.out;
      }
      if (response.status === 403 || response.status === 404) {
        return response.status === 403 ? ENDED.forged : data.hub ? ENDED.released : ENDED.gone;
      }
      if (!response.ok || !response.headers.get("Content-Type").startsWith("text/event-stream")) {
        const after = Number(response.headers.get("Retry-After"));
        if (after > 0) {
          pause = Math.max(pause, after * 1000);
        }
        return null;
      }
      await read(response.body, received, since);
      pause = FIRST_PAUSE; // the stream ended normally
    } catch {
      answered = false; // the connection failed: run tries again
    } finally {
      clearTimeout(watchdog);
      clearTimeout(hideTimer);
      document.removeEventListener("visibilitychange", watchVisibility);
      abort.abort();
    }
    return null;
  }

  async function read(body, received, since) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        return;
      }
      received();
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        dispatch(block, since);
      }
    }
  }

  // dispatch handles a block of a stream before which the page received data at the time since.
  function dispatch(block, since) {
    let type = "";
    let text = "";
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) {
        position = line.slice(4);
      } else if (line.startsWith("event: ")) {
        type = line.slice(7);
      } else if (line.startsWith("data: ")) {
        text = line.slice(6);
      }
    }
    if (text === "") {
      return; // a keepalive, or a position without an event
    }
    const message = JSON.parse(text.replace(DIRECTIONS, "$1"));
    switch (type) {
      case "hub.portal_begin":
        if (message.anew) {
          handlers.begin(since);
        }
        report(textOf("live"), "good");
        pause = FIRST_PAUSE;
        break;
      case "hub.portal_states":
        handlers.states(message);
        break;
      case "feed.gap":
        handlers.gap(message);
        break;
      case "hub.portal_now":
        handlers.now();
        break;
      default:
        handlers.event(message);
    }
  }

  async function run() {
    report(textOf("connecting"), "");
    for (;;) {
      const ended = await connect();
      if (ended) {
        report(textOf(ended), "bad");
        if (ended === ENDED.out || ended === ENDED.forged) {
          sessionEnded(ended === ENDED.forged);
        }
        return;
      }
      warning ??= setTimeout(warn, GRACE);
      if (document.hidden) {
        await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
        continue;
      }
      if (!answered && Date.now() - receivedAt < LONG_OUTAGE) {
        pause = Math.min(pause, OUTAGE_PAUSE);
      }
      await sleep(pause * (0.5 + Math.random()));
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }
  run();
}
