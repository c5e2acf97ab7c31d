/** What comes after the status of an answer, which alone decides: read as far as it is of use. */
import { readBeginning } from '../http/bounded-fetch.ts';

/** Of a body that nobody waits for; to keep its connection is worth no more. */
const bytesMax = 65_536;
/** Such bodies at a time; the oldest is left when there are more. */
const drainedMax = 64;

type Body = ReadableStream<Uint8Array> | null;

/** The text, as much of it as came and is within bounds. Never rejects. */
export async function beginningOf(body: Body): Promise<string> {
  return new TextDecoder().decode(Buffer.concat(await readBeginning(body)));
}

export interface Drain {
  /** Lets a short body come to its end, so that its connection serves again. Nobody waits for it. */
  take(body: Body): void;
  /** Leaves those that have not ended. */
  close(): void;
}

export function createDrain(): Drain {
  const open = new Set<ReadableStreamDefaultReader<Uint8Array>>();
  // Its read ends, and with it the connection.
  const leave = (reader: ReadableStreamDefaultReader<Uint8Array>) => {
    open.delete(reader);
    reader.cancel().catch(() => undefined);
  };
  const drain = async (reader: ReadableStreamDefaultReader<Uint8Array>) => {
    for (let bytes = 0; bytes < bytesMax; ) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.byteLength;
    }
  };
  return {
    take: (body) => {
      if (body === null) return;
      const reader = body.getReader();
      open.add(reader);
      drain(reader).then(
        () => leave(reader),
        () => leave(reader),
      );
      const [oldest] = open;
      if (open.size > drainedMax && oldest !== undefined) leave(oldest);
    },
    close: () => {
      for (const reader of open) leave(reader);
    },
  };
}
