import { ApiError, isRepeatable } from "./errors.js";
import { isGap } from "./gaps.js";
import type { Call, FollowOptions, Sent, StartPosition } from "./options.js";
import { limitedSignal, sleep } from "./timing.js";
import type { Channel, ChannelValue, Device, Event } from "./types.js";

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

/** What the outcome of a command is read with. */
export interface Watcher {
  follow(hubId: string, from: StartPosition, options: FollowOptions): AsyncGenerator<Event, void, undefined>;
  device(hubId: string, deviceId: number, options: Call): Promise<Device>;
}

const firstReading = 2000;
const nextReading = 5000;
/**
 * How long to wait for the event once the device shows the outcome, and for the device once there is an event: the event has the first
 * report, the device only the last, but only the hub knows whether the report is of this command.
 */
const eventGrace = 1000;

/** Waits for the outcome of a command, at most for `limit` ms: for its event after a cursor from before it was sent, and for the state of the device. */
export async function awaitOutcome(client: Watcher, sent: Sent, after: string, limit: number, signal: AbortSignal | undefined): Promise<Outcome> {
  const stop = new AbortController();
  const ended = limitedSignal(limit, stop.signal, signal);
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
async function watchEvents(client: Watcher, sent: Sent, after: string, signal: AbortSignal): Promise<Outcome> {
  let desired = false;
  for await (const event of client.follow(sent.hub_id, { after }, { signal })) {
    if (event.type === "channel.status" && desired && isOfChannel(event, sent) && event.data.status === "failed") {
      return { status: "failed" };
    }
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
      const outcome: Outcome = { status: meets ? "synchronized" : "diverged", value: event.data.value, observedAt: event.time };
      outcome.status = await confirmed(client, sent, outcome, signal);
      if (outcome.status !== "pending") {
        return outcome;
      }
    }
  }
  throw new Error("the events ended");
}

/**
 * The status of the outcome that an event shows: what the hub says of the same report, if it answers soon. Only the hub knows the resolution
 * of a value, and that a report was to an earlier command that asked for the same, while this one is still pending.
 */
async function confirmed(client: Watcher, sent: Sent, outcome: Outcome, signal: AbortSignal): Promise<OutcomeStatus> {
  let channel: Channel | undefined;
  try {
    channel = await readChannel(client, sent, limitedSignal(eventGrace, signal));
  } catch {
    signal.throwIfAborted();
  }
  if (!channel?.desired_at || channel.desired_at !== sent.channel.desired_at) {
    return outcome.status;
  }
  if (channel.status === "pending" || channel.status === "failed" || (isOutcome(channel.status) && matches(channel.value, outcome.value ?? null))) {
    return channel.status;
  }
  return outcome.status; // the device has reported again since
}

async function readChannel(client: Watcher, sent: Sent, signal: AbortSignal): Promise<Channel | undefined> {
  const device = await client.device(sent.hub_id, sent.device_id, { signal });
  return device.channels.find((c) => c.key === sent.channel.key && c.endpoint === sent.channel.endpoint);
}

/** Reports whether a channel with the status has no command under way. */
function isOutcome(status: Channel["status"]): status is "synchronized" | "diverged" | "failed" {
  return status === "synchronized" || status === "diverged" || status === "failed";
}

function isAbout(event: Event, sent: Sent): event is Extract<Event, { type: "channel.observed" | "channel.desired" }> {
  return (
    (event.type === "channel.observed" || event.type === "channel.desired") && isOfChannel(event, sent)
  );
}

function isOfChannel(event: { device_id: number | null; data: { key: string; endpoint: number } }, sent: Sent): boolean {
  return event.device_id === sent.device_id && event.data.key === sent.channel.key && event.data.endpoint === sent.channel.endpoint;
}

/** Reads the device every few seconds, because not every hub tells that it has abandoned a command. */
async function watchDevice(client: Watcher, sent: Sent, signal: AbortSignal): Promise<Outcome> {
  for (let wait = firstReading; ; wait = nextReading) {
    await sleep(wait, signal);
    signal.throwIfAborted();
    try {
      const channel = await readChannel(client, sent, signal);
      const [asked, now] = [sent.channel.desired_at, channel?.desired_at];
      if (!channel || !asked || !now || now < asked) {
        continue;
      }
      if (now > asked) {
        return { status: "superseded" };
      }
      // A value from before the command is no outcome of it, whatever status the hub gives it.
      if (isOutcome(channel.status) && (channel.status === "failed" || channel.observed_at !== sent.channel.observed_at)) {
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
