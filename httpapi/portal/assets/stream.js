// The stream of events: one connection, kept up for as long as the page is open. It posts where it stood in each hub's log, so that every event
// comes once, whatever happened in between. EventSource cannot do that: it posts nothing, and hears no type that it does not know beforehand.

const SILENCE = 90_000; // after that long without a keepalive the connection is taken for dead
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;
const HIDDEN = 20_000; // a page that nobody sees gives its connection up after that: a browser has six, for all its tabs
const FORGET = 300_000; // what was missed for longer than that is left to the hubs' logs: nobody reads it here, and it may be very much
const PATIENCE = 2_000; // a connection that is back sooner was never away: streams end every quarter of an hour, and nobody need know
const TICK = 5_000;
const ASLEEP = 30_000; // a clock that jumps that far between two ticks has slept, and its connection is dead, whatever it looks like

const OVER = {
  out: "You are signed out. Load the page again to sign in.",
  gone: "You are no member of this organization any more.",
  released: "The organization does not have this hub any more, or you are no member of it.",
  forged: "You have signed in anew since this page was loaded. Load it again to go on.",
};

// openStream follows the events of data.hub, or of all hubs, from recent seconds ago where those are few. handlers: event(envelope),
// states({whole, hubs}), gap(hub), begin(since) when what was shown up to that time has no connection to what comes, now() when what comes is no more
// history, connection(text, how) with how one of "good", "bad" and "".
export function openStream(data, handlers, recent) {
  const positions = new Map();
  let pause = FIRST_PAUSE;
  let heardAt = Date.now();
  let cut = null; // cuts the connection off
  let wake = null; // ends a wait before its time
  let complaint = null; // says that the connection is away, once it has been for a while

  function say(text, how) {
    clearTimeout(complaint);
    complaint = null;
    handlers.connection(text, how);
  }

  // sleep waits, but not on while the page has a reason to try at once.
  const sleep = (pause) =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, pause);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  window.addEventListener("online", () => wake?.());
  document.addEventListener("visibilitychange", () => !document.hidden && wake?.());
  let ticked = Date.now();
  setInterval(() => {
    if (Date.now() - ticked > ASLEEP && !document.hidden) {
      cut?.();
      wake?.();
    }
    ticked = Date.now();
  }, TICK);

  async function connect() {
    const abort = new AbortController();
    cut = () => abort.abort();
    let watchdog;
    const watch = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), SILENCE);
    };
    const heard = () => {
      heardAt = Date.now();
      watch();
    };
    let unseen;
    const look = () => {
      clearTimeout(unseen);
      if (document.hidden) {
        unseen = setTimeout(() => abort.abort(), HIDDEN);
      }
    };
    if (positions.size > 0 && Date.now() - heardAt > FORGET) {
      positions.clear();
      handlers.begin(heardAt);
    }
    watch();
    look();
    document.addEventListener("visibilitychange", look);
    try {
      const response = await fetch(data.stream, {
        method: "POST",
        headers: { Accept: "text/event-stream" },
        body: new URLSearchParams({
          form_token: data.form_token,
          hub: data.hub,
          recent: String(recent),
          positions: [...positions].map(([hub, cursor]) => `${hub} ${cursor}`).join("\n"),
        }),
        signal: abort.signal,
      });
      if (response.redirected || response.status === 401) {
        return OVER.out;
      }
      if (response.status === 403 || response.status === 404) {
        return response.status === 403 ? OVER.forged : data.hub ? OVER.released : OVER.gone;
      }
      if (!response.ok || !response.headers.get("Content-Type").startsWith("text/event-stream")) {
        const after = Number(response.headers.get("Retry-After"));
        if (after > 0) {
          pause = Math.max(pause, after * 1000);
        }
        return null;
      }
      await read(response.body, heard);
      pause = FIRST_PAUSE; // it was there, and has come to its end
    } catch {
      // The network is away: the next try tells more.
    } finally {
      clearTimeout(watchdog);
      clearTimeout(unseen);
      document.removeEventListener("visibilitychange", look);
      abort.abort();
    }
    return null;
  }

  async function read(body, heard) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        return;
      }
      heard();
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        take(block);
      }
    }
  }

  function take(block) {
    let type = "";
    let text = "";
    for (const line of block.split("\n")) {
      if (line.startsWith("event: ")) {
        type = line.slice(7);
      } else if (line.startsWith("data: ")) {
        text = line.slice(6);
      }
    }
    if (text === "") {
      return; // a keepalive
    }
    const message = JSON.parse(text);
    switch (type) {
      case "hub.portal_positions":
        for (const [hub, cursor] of Object.entries(message)) {
          positions.set(hub, cursor);
        }
        say("Live", "good");
        pause = FIRST_PAUSE;
        break;
      case "hub.portal_states":
        handlers.states(message);
        break;
      case "hub.portal_gap":
        handlers.gap(message.hub_id);
        break;
      case "hub.portal_now":
        handlers.now();
        break;
      default:
        positions.set(message.hub_id, message.cursor);
        handlers.event(message);
    }
  }

  async function run() {
    say("Connecting…", "");
    for (;;) {
      const over = await connect();
      if (over) {
        say(over, "bad");
        return;
      }
      complaint ??= setTimeout(() => handlers.connection("Connecting again…", ""), PATIENCE);
      if (document.hidden) {
        await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
        continue;
      }
      await sleep(pause * (0.5 + Math.random()));
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }
  run();
}
