import type { Params } from "@hubcloud/hub";

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

/** A channel and its state. */
export interface Channel extends Required<ChannelSpec> {
  kind: string;
  available: boolean;
  value: Value;
  observed_at: string | null;
  desired: Value;
  desired_at: string | null;
  status: "unknown" | "synchronized" | "pending" | "diverged" | "failed";
}

/** What a device is, as the radio knows it. */
export interface DeviceSpec {
  name: string;
  manufacturer: string;
  model: string;
  channels: ChannelSpec[];
  /** False if it joined without the security that it needs: its commands are then refused. */
  secure?: boolean;
}

/** A device and its state. Read it; change it with the methods of DeviceHub. */
export interface Device extends DeviceSpec {
  readonly id: number;
  /** The radio's own name of the device, by which the hub finds it again. */
  readonly ref: string;
  available: boolean;
  /** When a device that sleeps is expected to wake. */
  wakes_at?: string;
  channels: Channel[];
}

/** A command that the hub is about to accept, or has accepted. */
export interface Command {
  readonly device: Device;
  readonly channel: Channel;
  readonly value: Value;
}

/** What the hub asks of its radio. */
export interface Radio {
  /** Reports whether the radio can act now. */
  ready(): boolean;
  /** Throws a HubError if a command is not to be accepted. */
  check(command: Command): void;
  /**
   * Sends an accepted command to the device and resolves when the device has it: at once, or when
   * it wakes. What the device then reports goes to DeviceHub.observe. Rejects if the device is not
   * reached, and the channel becomes failed.
   */
  drive(command: Command): Promise<unknown>;
  /** Removes a device that is not reached any more. Rejects, with a HubError, if it must stay. */
  forget(device: Device): Promise<void>;
  openPairing(setupCode: string | undefined): Promise<void>;
  /** Closes the window: it was asked for, its time is over, or a device has joined, or left. */
  closePairing(reason: "asked" | "timeout" | "joined"): Promise<void>;
  openRemoval?(): Promise<void>;
  closeRemoval?(reason: "asked" | "timeout" | "joined"): Promise<void>;
  /** The codes of locks: the methods credentials.list, set and remove. A radio that cannot set them has no such member. */
  readonly codes?: undefined | {
    list(device: Device): object;
    set(device: Device, params: Params): Promise<object>;
    remove(device: Device, slot: number): Promise<object>;
  };
}
