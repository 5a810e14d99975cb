/** The parameters of a request. */
export type Params = Record<string, unknown>;

/** An event before it has its number. */
export interface HubEvent {
  type: string;
  device_id: number | null;
  data: object;
}

/** An error that the cloud understands; any other error is answered as `hub_error`. */
export class HubError extends Error {
  constructor(
    readonly type: "not_found" | "invalid_request" | "command_refused" | "slot_taken" | "lock_full" | "hub_unavailable" | "hub_error" |
      "unknown_method",
    message: string,
  ) {
    super(message);
  }
}

export interface HubOptions {
  /** Address of the service without /v1, such as https://hubs.example.com. */
  url: string;
  serial: string;
  /** The enrolment secret. */
  secret: string;
  /** Folder that keeps certificate, events and values. One process at a time may use it. */
  dir: string;
  /** Version of the hub's program, 1 to 200 characters. */
  firmware: string;
  /** The `network` of the hello. Defaults to what the system says about its first interface. */
  network?: () => object;
  /** Reports whether the hub knows the time. Defaults to: the year is 2026 or later. */
  clockTrusted?: () => boolean;
  /** How many events are kept while the cloud is away. Defaults to 10,000. */
  capacity?: number;
  /** Gets a line for people. Defaults to standard error. */
  log?: (line: string) => void;
}
