import { readFileSync } from "node:fs";

/** The settings that the test writes. */
export interface Settings {
  base: string;
  key: string;
  narrowKey: string;
  burstKey: string;
  hub: string;
  faultyHub: string;
  offlineHub: string;
  lamp: number;
  foreignCursor: string;
  unknownSerial: string;
  unlinked: string;
}

export const settings: Settings = JSON.parse(readFileSync(process.argv[2]!, "utf8"));

export function check(ok: unknown, what: string, shown?: unknown): asserts ok {
  if (!ok) {
    console.error(what, JSON.stringify(shown));
    process.exit(1);
  }
}
