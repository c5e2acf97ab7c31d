/** Reads of an answer's body what may tell why a request failed: its status has told the rest. */

/** Nothing more is read after so many. */
const bytesMax = 64 * 1024;

/**
 * The pieces of a body that came within the time (unless told, until the request is given up), up to 64 KiB and the
 * rest of the last piece. Leaves what follows, which closes the connection. Never rejects: of a body that breaks, it
 * is what came before.
 */
export async function readBeginning(
  body: ReadableStream<Uint8Array> | null,
  { timeoutMs }: { timeoutMs?: number } = {},
): Promise<Uint8Array[]> {
  if (body === null) return [];
  const reader = body.getReader();
  // What is waited for then ends, as if the body did.
  const leave = () => void reader.cancel().catch(() => undefined);
  const timer = timeoutMs === undefined ? undefined : setTimeout(leave, timeoutMs);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    while (bytes < bytesMax) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.byteLength;
      chunks.push(value);
    }
  } catch {
    // It broke: the status stands.
  } finally {
    clearTimeout(timer);
    leave();
  }
  return chunks;
}
