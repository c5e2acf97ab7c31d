/** A `fetch` for services of others: whole answers within bounds, and no redirects. */

/** What a client takes unless told otherwise: hardly an answer that earshot asks for comes near this. */
export const answerBytesMax = 2 ** 20;

/** Of a body that is read for the reason of a failure alone: so much of it, and no longer. */
const reasonBytesMax = 64 * 1024;
const reasonTimeoutMs = 2_000;

/**
 * Whose bodies are read: of all answers, or of failures alone, where the status says all there is to know. Then a
 * body that is large, slow or cut makes no failure of a success, and no other failure of one.
 */
export type BodiesRead = 'all' | 'of-failures';

/** An answer that cannot be taken, though it came. */
export class UnusableAnswer extends Error {
  /** `reason` completes "… could not be asked: " and holds nothing of the answer. */
  constructor(reason: string) {
    super(reason);
    this.name = 'UnusableAnswer';
  }
}

/**
 * Reads each answer to its end before it is handed out, so that a timeout of the request covers the
 * body too. Redirects come back as they are: passwords and tokens must not travel to where another
 * service points. Rejects as `fetch` does, and with UnusableAnswer for more than `bytesMax`. With the bodies
 * `of-failures`, it resolves once the status is there: a success without its body, a failure with what could
 * be read of it at once.
 */
export function createBoundedFetch(
  send: typeof fetch,
  bytesMax: number = answerBytesMax,
  bodies: BodiesRead = 'all',
): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, { ...init, redirect: 'manual' });
    request.headers.set('user-agent', 'earshot');
    const response = await send(request);
    const { status, statusText } = response;
    // A copy, as those of an answer cannot be changed.
    const headers = new Headers(response.headers);
    const body = await (bodies === 'all' ? readBounded(response, bytesMax) : readReason(response));
    if (status < 200 || status > 599) {
      throw new UnusableAnswer(`it answered with a status that does not exist (${status})`);
    }
    // Of the class of fetch's own answers: a Hono server in this process replaces the global one by
    // another, whose methods cannot be changed, as ky does.
    const Answer = response.constructor as typeof Response;
    return new Answer(body.byteLength === 0 ? null : body, { status, statusText, headers });
  };
}

async function readBounded({ body }: Response, bytesMax: number) {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop closes the connection.
    if (bytes > bytesMax) {
      throw new UnusableAnswer(`its answer is larger than ${bytesMax} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function readReason({ ok, body }: Response) {
  if (body === null) return Buffer.alloc(0);
  const reader = body.getReader();
  // Closes the connection. What is waited for then ends, as if the body did.
  const leave = () => void reader.cancel().catch(() => undefined);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const enough = setTimeout(leave, reasonTimeoutMs);
  try {
    while (!ok && bytes < reasonBytesMax) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.byteLength;
      chunks.push(value);
    }
  } catch {
    // It broke: the status stands.
  } finally {
    clearTimeout(enough);
    leave();
  }
  return Buffer.concat(chunks).subarray(0, reasonBytesMax);
}
