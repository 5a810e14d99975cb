import type { Client, Sent } from "./client.js";
import { ApiError, isRepeatable } from "./errors.js";
import { isGap } from "./follow.js";
import { sleep } from "./timing.js";
import type { ChannelValue, Event } from "./types.js";

/**
 * - `synchronized`: the device reports the desired value
 * - `diverged`: the device reports another value
 * - `failed`: the hub has abandoned the command
 * - `superseded`: another value was desired before the device reported
 * - `pending`: the limit has passed, and the command is still under way
 */
export type OutcomeStatus = "synchronized" | "diverged" | "failed" | "superseded" | "pending";

/** The outcome of a command. */
export interface Outcome {
  status: OutcomeStatus;
  /** What the device reported; undefined if it has not reported. */
  value?: ChannelValue;
  /** When the device reported, by the hub's clock. */
  observedAt?: string;
}

const firstReading = 2000;
const nextReading = 5000;
/** How long to wait for the event once the device shows the outcome: the event has the first report, the device only the last. */
const eventGrace = 1000;

/** Waits for the outcome of a command, at most for `limit` ms: for its event after a cursor from before it was sent, and for the state of the device. */
export async function awaitOutcome(client: Client, sent: Sent, after: string, limit: number, signal: AbortSignal | undefined): Promise<Outcome> {
  const stop = new AbortController();
  const ended = AbortSignal.any([stop.signal, AbortSignal.timeout(limit), ...(signal ? [signal] : [])]);
  const watches = [watchEvents(client, sent, after, ended), watchDevice(client, sent, ended)];
  try {
    return await Promise.any(watches);
  } catch (error) {
    signal?.throwIfAborted();
    const reasons = error instanceof AggregateError ? error.errors : [error];
    const reason = reasons.find((e) => e instanceof ApiError);
    if (reason) {
      throw reason; // neither the events nor the device can be read
    }
    return { status: "pending" };
  } finally {
    stop.abort();
    await Promise.allSettled(watches);
  }
}

/** Waits for the channel.observed event that follows the command's channel.desired. */
async function watchEvents(client: Client, sent: Sent, after: string, signal: AbortSignal): Promise<Outcome> {
  let desired = false;
  for await (const event of client.follow(sent.hub_id, { after }, { signal })) {
    if (!isAbout(event, sent)) {
      if (isGap(event)) {
        desired = false;
      }
      continue;
    }
    const meets = matches(event.data.value, sent.channel.desired);
    if (event.type === "channel.desired") {
      if (desired && !meets) {
        return { status: "superseded" };
      }
      desired ||= meets;
    } else if (desired) {
      return { status: meets ? "synchronized" : "diverged", value: event.data.value, observedAt: event.time };
    }
  }
  throw new Error("the events ended");
}

function isAbout(event: Event, sent: Sent): event is Extract<Event, { type: "channel.observed" | "channel.desired" }> {
  return (
    (event.type === "channel.observed" || event.type === "channel.desired") &&
    event.device_id === sent.device_id &&
    event.data.key === sent.channel.key &&
    event.data.endpoint === sent.channel.endpoint
  );
}

/** Reads the device every few seconds, because an abandoned command has no event. */
async function watchDevice(client: Client, sent: Sent, signal: AbortSignal): Promise<Outcome> {
  for (let wait = firstReading; ; wait = nextReading) {
    await sleep(wait, signal);
    signal.throwIfAborted();
    try {
      const device = await client.device(sent.hub_id, sent.device_id, { signal });
      const channel = device.channels.find((c) => c.key === sent.channel.key && c.endpoint === sent.channel.endpoint);
      const [asked, now] = [sent.channel.desired_at, channel?.desired_at];
      if (!channel || !asked || !now || now < asked) {
        continue;
      }
      if (now > asked) {
        return { status: "superseded" };
      }
      if (channel.status === "synchronized" || channel.status === "diverged" || channel.status === "failed") {
        if (channel.status !== "failed") {
          await sleep(eventGrace, signal);
          signal.throwIfAborted();
        }
        const outcome: Outcome = { status: channel.status, value: channel.value };
        return channel.observed_at ? { ...outcome, observedAt: channel.observed_at } : outcome;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ApiError && !isRepeatable(error.status)) {
        throw error;
      }
    }
  }
}

/** Reports whether a value is the desired one: an object if it has the members that the desired one has. */
function matches(value: ChannelValue, desired: ChannelValue): boolean {
  if (typeof desired !== "object" || desired === null) {
    return value === desired;
  }
  if (typeof value !== "object" || value === null) {
    return false;
  }
  const reported = value as Record<string, unknown>;
  return Object.entries(desired).every(([name, wanted]) => wanted === null || reported[name] === wanted);
}
