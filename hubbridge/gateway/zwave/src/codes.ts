import { HubError, type Params } from "@hubcloud/hub";
import { UserCodeCC, UserIDStatus } from "@zwave-js/cc";
import { CommandClasses } from "@zwave-js/core";
import type { Driver, ZWaveNode } from "zwave-js";
import type { DeviceHub } from "../../devices/devicehub.js";
import type { Device, Value } from "../../devices/types.js";

interface Weekly { days: string[]; from: string; until: string }
/** When a code opens: the members of credentials.set. */
interface Times { valid_from?: string | null | undefined; valid_until?: string | null | undefined; time_zone?: string | undefined; schedule?: Weekly[] | undefined }
/** A code that a lock has, without the code. One that was set at the lock has no times. */
interface Code { label: string; times?: Times; open?: boolean }

const { Enabled, Disabled } = UserIDStatus;

/** Codes are the user codes of locks. The codes themselves are in the locks only. */
export class Codes {
  private readonly changing = new Set<string>(); // slots that the hub changes: what the lock reports of them is known
  private queue: Promise<unknown> = Promise.resolve(); // changes come one after the other

  constructor(
    private readonly hub: DeviceHub, private readonly driver: Driver, private readonly nodeOf: (device: Device) => ZWaveNode | undefined,
  ) {}

  private of(device: Device): Record<string, Code> {
    return (this.hub.get(`codes/${device.id}`) ?? {}) as unknown as Record<string, Code>;
  }

  private keep(device: Device, slot: number, code: Code | undefined, events: [type: string, data: object][] = []): Promise<void> {
    const { [slot]: _, ...others } = this.of(device);
    const next = code ? { ...others, [slot]: code } : others;
    return this.hub.change({ [`codes/${device.id}`]: next as unknown as Value }, events.map(([type, data]) => ({ type, device_id: device.id, data })));
  }

  private lock(device: Device): ZWaveNode {
    const node = this.nodeOf(device);
    if (!node?.supportsCC(CommandClasses["User Code"])) throw new HubError("not_found", `${device.name} takes no codes`);
    return node;
  }

  private capacity(node: ZWaveNode): number {
    return UserCodeCC.getSupportedUsersCached(this.driver, node) ?? 0;
  }

  /** Answers credentials.list. */
  list(device: Device): object {
    return { slots: Object.keys(this.of(device)).map(Number), capacity: this.capacity(this.lock(device)) };
  }

  /** Answers credentials.set. */
  set(device: Device, params: Params): Promise<object> {
    const { slot, label, code } = params as { slot: number; label: string; code?: string };
    const { valid_from, valid_until, time_zone, schedule } = params as Times, times = { valid_from, valid_until, time_zone, schedule };
    const node = this.lock(device), capacity = this.capacity(node);
    return this.change(device, slot, async () => {
      const known = this.of(device)[slot], bounded = valid_from ?? valid_until ?? schedule?.[0];
      if (known && !known.times) throw new HubError("slot_taken", `slot ${slot} has a code that was set at the lock`);
      if (slot > capacity) throw new HubError("lock_full", `the lock has room for ${capacity} codes`);
      if (!known && code === undefined) throw new HubError("invalid_request", `slot ${slot} has no code to change`);
      if (bounded && !UserCodeCC.getSupportedUserIDStatusesCached(this.driver, node)?.includes(Disabled)) {
        throw new HubError("command_refused", `${device.name} cannot keep times`);
      }
      const open = opens(times, new Date());
      if (code !== undefined || open !== known?.open) await this.write(node, slot, open, code);
      await this.keep(device, slot, { label, times, open }, [
        ...known ? [] : [["credential.created", { slot, label }] as [string, object]], ["credential.applied", { slot, state: "active" }],
      ]);
    });
  }

  /** Answers credentials.remove. */
  remove(device: Device, slot: number): Promise<object> {
    const node = this.lock(device);
    return this.change(device, slot, async () => {
      if (!this.of(device)[slot]?.times) return;
      await node.commandClasses["User Code"].clear(slot);
      await this.keep(device, slot, undefined, [["credential.revoked", { slot }]]);
    });
  }

  private change(device: Device, slot: number, work: () => Promise<void>): Promise<object> {
    const name = `${device.id} ${slot}`;
    const done = this.queue.then(async () => {
      this.changing.add(name);
      try {
        await work();
      } finally {
        this.changing.delete(name);
      }
      return {};
    });
    this.queue = done.catch(() => undefined);
    return done;
  }

  /** Writes a code, or the one that the lock has, and makes it open or not. The lock must confirm it. */
  private async write(node: ZWaveNode, slot: number, open: boolean, code?: string): Promise<void> {
    const api = node.commandClasses["User Code"], status = open ? Enabled : Disabled;
    const now = code ?? (await api.get(slot))?.userCode;
    if (now === undefined) throw new HubError("hub_unavailable", "the lock does not answer");
    await api.set(slot, status, now);
    const confirmed = await api.get(slot);
    if (!confirmed) throw new HubError("hub_unavailable", "the lock does not answer");
    if (confirmed.userIdStatus !== status) throw new HubError("invalid_request", "the lock does not take this code");
  }

  /** Takes what a lock reports of a slot: somebody at the lock may have set a code, or removed one. */
  async reported(device: Device, slot: number, taken: boolean): Promise<void> {
    const known = this.of(device)[slot], label = `Code ${slot}`;
    if (taken === (known !== undefined) || this.changing.has(`${device.id} ${slot}`)) return;
    await this.keep(device, slot, taken ? { label } : undefined, taken
      ? [["credential.created", { slot, label }], ["credential.applied", { slot, state: "active" }]] : [["credential.revoked", { slot }]]);
  }

  /** Takes the report of a lock that all its codes are removed. */
  async reportedNone(device: Device): Promise<void> {
    for (const slot of Object.keys(this.of(device))) await this.reported(device, Number(slot), false);
  }

  /** Makes codes open, and no longer, whose times have come. */
  async tick(now = new Date()): Promise<void> {
    for (const device of this.hub.devices) {
      for (const [slot, code] of Object.entries(this.of(device))) {
        const node = this.nodeOf(device), open = code.times && opens(code.times, now);
        if (open === code.open || !node || !device.available) continue;
        await this.change(device, Number(slot), async () => {
          await this.write(node, Number(slot), open === true);
          await this.keep(device, Number(slot), { ...code, open: open === true });
        });
      }
    }
  }
}

/** Reports whether a code opens at a time. */
export function opens({ valid_from, valid_until, time_zone, schedule }: Times, now: Date): boolean {
  if (valid_from && now < new Date(valid_from) || valid_until && now > new Date(valid_until)) return false;
  if (!schedule?.length) return true;
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone: time_zone ?? "UTC", weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
  }).formatToParts(now);
  const part = (type: string): string => parts.find((each) => each.type === type)?.value ?? "";
  const day = part("weekday").toLowerCase(), clock = `${part("hour")}:${part("minute")}`;
  return schedule.some(({ days, from, until }) => days.includes(day) && from <= clock && clock < until);
}
