/** A value of a channel: whatever JSON can hold. */
export type Value = null | boolean | number | string | Value[] | { [member: string]: Value };

/** What a channel is: the page "Device and Channel" of the hub protocol has the keys. */
export interface ChannelSpec {
  key: string;
  /** Defaults to 0; 1, 2, … where a device has several channels of a key. */
  endpoint?: number;
  /** Such as "%" or "°C". Defaults to null. */
  unit?: string | null;
  /** Defaults to true. */
  readable?: boolean;
  /** Defaults to false. */
  writable?: boolean;
  /** `min` and `max` of a setpoint, `resolution` of a number that the device rounds. */
  capabilities?: { [member: string]: Value };
}

/** What a device is, as the radio knows it. */
export interface DeviceSpec {
  name: string;
  manufacturer?: string;
  model?: string;
  channels: ChannelSpec[];
  /** False if it joined without the security that it needs: its commands are then refused. */
  secure?: boolean;
}

export type Status = "unknown" | "synchronized" | "pending" | "diverged" | "failed";

/** A channel and its state. */
export interface Channel {
  key: string;
  endpoint: number;
  kind: string;
  unit: string | null;
  available: boolean;
  readable: boolean;
  writable: boolean;
  capabilities: { [member: string]: Value };
  value: Value;
  observed_at: string | null;
  desired: Value;
  desired_at: string | null;
  status: Status;
}

/** A device and its state. Read it; change it with the methods of Hub. */
export interface Device {
  readonly id: number;
  /** The radio's own name of the device, by which the hub finds it again. */
  readonly ref: string;
  name: string;
  manufacturer: string;
  model: string;
  secure: boolean | null;
  available: boolean;
  wakes_at: string | null;
  channels: Channel[];
}

/** A command that the hub is about to accept, or has accepted. */
export interface Command {
  readonly device: Device;
  readonly channel: Channel;
  readonly value: Value;
}

/** An error that the cloud understands; any other error is answered as `hub_error`. */
export class HubError extends Error {
  constructor(
    readonly type: "not_found" | "invalid_request" | "command_refused" | "hub_unavailable" | "hub_error",
    message: string,
  ) {
    super(message);
  }
}

/** What the hub asks of its radio. */
export interface Radio {
  /** Reports whether the radio can act now. Without it, it always can. */
  ready?(): boolean;
  /** Rejects, with a HubError, a command that is not to be accepted. */
  check?(command: Command): void | Promise<void>;
  /**
   * Sends an accepted command to the device and resolves when the device has it: at once, or when
   * it wakes. What the device then reports goes to Hub.observe. Rejects if the device is not
   * reached, and the channel becomes failed.
   */
  drive(command: Command): Promise<unknown>;
  /** Removes a device that is not reached any more. Rejects, with a HubError, if it must stay. */
  forget?(device: Device): Promise<void>;
  openPairing?(setupCode: string | undefined): Promise<void>;
  /** Closes the window: it was asked for, its time is over, or a device has joined. */
  closePairing?(reason: "asked" | "timeout" | "joined"): Promise<void>;
  openRemoval?(): Promise<void>;
  closeRemoval?(): Promise<void>;
}

/** How the hub reaches the cloud. */
export interface Network {
  type: "ethernet" | "wifi" | "cellular";
  interface: string;
  ip_address: string | null;
  ipv6_address: string | null;
  mac_address: string | null;
  ssid: string | null;
  signal_dbm: number | null;
  carrier: string | null;
  radio: string | null;
  metered: boolean;
}

export interface HubOptions {
  /** Address of the service without /v1, such as https://hubs.example.com. */
  url: string;
  serial: string;
  /** The enrolment secret. */
  secret: string;
  /** Folder that keeps certificate, events and devices. One process at a time may use it. */
  dir: string;
  /** Version of the hub's program, 1 to 200 characters. */
  firmware: string;
  /** Defaults to what the system says about its first interface. */
  network?: () => Network;
  /** Reports whether the hub knows the time. Defaults to: the year is 2026 or later. */
  clockTrusted?: () => boolean;
  /** Events that are kept while the cloud is away. Defaults to 10,000 and 32 MiB. */
  capacity?: { events: number; bytes: number };
  /** How long a device that has a command may take to report, in ms. Defaults to 30,000. */
  giveUpAfter?: number;
  /** Gets a line for people. Defaults to standard error. */
  log?: (line: string) => void;
}
