/** Builds a path. Every segment is escaped. */
export function route(...segments: (string | number)[]): string {
  for (const segment of segments) {
    if (["", ".", ".."].includes(String(segment))) {
      throw new TypeError(`${JSON.stringify(segment)} is not an id`);
    }
  }
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join("");
}
