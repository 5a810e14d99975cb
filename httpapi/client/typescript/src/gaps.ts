import type { Event, FeedEvent, FeedGapEvent, HubEventsSkippedEvent, HubLogResetEvent } from "./types.js";

/** Reports whether an event says that events may be missing before it: read the devices again. */
export function isGap(event: Event): event is HubEventsSkippedEvent | HubLogResetEvent {
  return event.type === "hub.events_skipped" || event.type === "hub.log_reset";
}

/** Reports whether an event of a feed says that events of its hub are gone for this reader: read the hub's devices again. */
export function isFeedGap(event: FeedEvent): event is FeedGapEvent & { position?: string } {
  return event.type === "feed.gap";
}
