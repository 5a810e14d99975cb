import { ProtocolError } from "./errors.js";

/** A block of an event stream that has an id or data. */
export interface Block {
  id?: string;
  event?: string;
  data?: string;
}

const longestBlock = 1 << 20;

/**
 * Parses an event stream as in section 9.2.6 of the HTML standard. A block without data dispatches no event, but its id still moves
 * the position. An incomplete block at the end is dropped. onRetry is called with each reconnection time, in ms.
 */
export async function* blocks(stream: AsyncIterable<Uint8Array>, onRetry: (ms: number) => void): AsyncGenerator<Block> {
  let block: Block = {};
  let size = 0;
  for await (const line of lines(stream)) {
    size += line.length;
    if (size > longestBlock) {
      throw new ProtocolError(`a block of the event stream is longer than ${longestBlock} characters`);
    }
    if (line === "") {
      if (block.id !== undefined || block.data !== undefined) {
        yield block;
      }
      block = {};
      size = 0;
      continue;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    switch (name) {
      case "data":
        block.data = block.data === undefined ? value : `${block.data}\n${value}`;
        break;
      case "event":
        block.event = value;
        break;
      case "id":
        if (!value.includes("\0")) {
          block.id = value;
        }
        break;
      case "retry":
        if (/^[0-9]{1,9}$/.test(value)) {
          onRetry(Number(value));
        }
    }
  }
}

/** Yields the complete lines of a stream. Lines end with CR LF, LF or CR, and a CR ends its line at once. */
async function* lines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder(); // skips a byte order mark
  let rest = "";
  let afterCR = false;
  for await (const chunk of stream) {
    let text = decoder.decode(chunk, { stream: true });
    if (afterCR && text !== "") {
      if (text[0] === "\n") {
        text = text.slice(1);
      }
      afterCR = false;
    }
    afterCR ||= text.endsWith("\r");
    const parts = (rest + text).split(/\r\n|\n|\r/);
    rest = parts.pop() ?? "";
    if (rest.length > longestBlock) {
      throw new ProtocolError(`a line of the event stream is longer than ${longestBlock} characters`);
    }
    yield* parts;
  }
}

/** Yields the chunks of a body. Browsers without asynchronous iteration of streams need the reader. */
export async function* chunks(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined); // the body may have failed already
  }
}
