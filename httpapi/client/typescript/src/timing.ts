/** Waits, at most until the signal aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}

/** Returns a signal that aborts with any of the given ones; undefined ones are left out. */
export function anySignal(...signals: (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((signal) => signal !== undefined));
}

/**
 * Returns a signal that aborts after a time, or with any of the given ones; undefined ones are left out. The timer holds its signal: Node 20
 * may forget an AbortSignal.timeout that is only part of another signal, which then never aborts.
 */
export function limitedSignal(ms: number, ...signals: (AbortSignal | undefined)[]): AbortSignal {
  const over = new AbortController();
  const timer: unknown = setTimeout(() => over.abort(new DOMException("no answer in time", "TimeoutError")), ms);
  (timer as { unref?: () => void }).unref?.(); // in Node the timer keeps no program running
  return anySignal(over.signal, ...signals);
}
