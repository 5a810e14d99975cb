import type { components } from "./api.js";

type Schemas = components["schemas"];

/** A building. */
export type Site = Schemas["Site"];
/** The single form of a hub. */
export type Hub = Schemas["Hub"];
/** The list form of a hub. */
export type HubItem = Schemas["HubItem"];
/** The list form of a device: its channels have no values. */
export type DeviceItem = Schemas["DeviceItem"];
/** The single form of a device, with the values of its channels. */
export type Device = Schemas["Device"];
/** What a channel of a device last reported. */
export type State = Schemas["State"];
/** Something that needs attention. */
export type Condition = Schemas["AttentionItem"];
/** The name and room of a device. */
export type DeviceLabel = Schemas["DeviceLabel"];
/** A channel with its reported and its desired value. */
export type Channel = Schemas["Channel"];
/** The value of a channel, whose form depends on the channel's key. */
export type ChannelValue = Schemas["ChannelValue"];
/** What sets a channel: `key`, `value` and, if the device has several channels of the key, `endpoint`. */
export type Command = Schemas["Command"];
/** The value of a command. */
export type CommandValue = Schemas["CommandValue"];
/** The brightness of each component, 0 to 255. */
export type Color = Schemas["Color"];
/** An accepted command, with its channel. */
export type AcceptedCommand = Schemas["AcceptedCommand"];
/** A request to set many channels. */
export type CommandBatch = Schemas["CommandBatch"];
/** Commands that were sent together, or a single one, with an outcome for each. */
export type Commands = Schemas["Commands"];
/** An event of a hub. Branch on `type`, and ignore the types that you do not handle: new ones may be added. */
export type Event = Schemas["Event"];
/** An event of the organization's feed, with the feed's position after it; without one, it is not the last of its page. */
export type FeedEvent = Event & { position?: string };
/** The marker of events that are gone for this reader of the organization's feed. */
export type FeedGapEvent = Schemas["FeedGapEvent"];
/** A page of the organization's feed. */
export type FeedPage = Schemas["FeedPage"];
/** A page of events. */
export type EventPage = Schemas["EventPage"];
/** How far the position of a page is behind. */
export interface Lag {
  /** How many events follow the page; undefined if the service has not said so. */
  eventsBehind?: number;
  /** In how many seconds the position can no longer be read on from: only if that is less than a quarter of the retention. */
  expiresIn?: number;
}
/** A reader of events that names itself. */
export type Reader = Schemas["EventReader"];
/** An address that the service posts events to. */
export type Webhook = Schemas["Webhook"];
/** A new webhook. */
export type WebhookRequest = Schemas["WebhookRequest"];
/** A change of a webhook. */
export type WebhookChange = Schemas["WebhookChange"];
/** A request to a webhook. */
export type WebhookDelivery = Schemas["WebhookDelivery"];
/** A code of a lock. */
export type Credential = Schemas["Credential"];
/** The codes of a lock. */
export type CredentialList = Schemas["CredentialList"];
/** A new code of a lock. */
export type NewCredential = Schemas["NewCredential"];
/** A change of a code. */
export type CredentialChange = Schemas["CredentialChange"];
/** One code for several locks. */
export type CredentialBatch = Schemas["CredentialBatch"];
/** What has become of one code for several locks. */
export type SentCredentials = Schemas["SentCredentials"];
/** A change in the organization: who changed what, when, and from where. */
export type AuditRecord = Schemas["AuditRecord"];
/** A page of the audit log. */
export type AuditPage = Schemas["AuditPage"];
/** What the devices of a hub had last reported at an instant. */
export type PastState = Omit<Schemas["PastState"], "has_more" | "next_starting_after">;
/** The marker of events that could not be delivered. */
export type HubEventsSkippedEvent = Schemas["HubEventsSkippedEvent"];
/** The first event of a hub's log that has begun anew. */
export type HubLogResetEvent = Schemas["HubLogResetEvent"];
/** A report of a device. */
export type ChannelObservedEvent = Schemas["ChannelObservedEvent"];
/** A person of the organization. */
export type Member = Schemas["Member"];
/** An invitation. */
export type Invitation = Schemas["Invitation"];
/** An open pairing or removal window. */
export type Window = Schemas["Window"];
/** The roles that an API key can give. */
export type GivenRole = Schemas["GivenRole"];
