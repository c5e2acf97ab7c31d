/** A `fetch` for services of others: whole answers within bounds, and no redirects. */
import { buffer, text } from 'node:stream/consumers';
import { readBeginning } from './read-beginning.ts';

/** What a client takes unless told otherwise: hardly an answer that earshot asks for comes near this. */
export const answerBytesMax = 2 ** 20;

/** A body that is read for the reason of a failure alone is waited for no longer. */
const reasonTimeoutMs = 2_000;

/**
 * Whose bodies are read, and how: of all answers; of all, for `text()` alone, since a Response would copy a large
 * one twice; or of failures alone, where the status says all there is to know. Then a body that is large, slow
 * or cut makes no failure of a success, and no other failure of one.
 */
export type BodiesRead = 'all' | 'as-text' | 'of-failures';

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
    const content = await contentOf(response, bytesMax, bodies);
    if (status < 200 || status > 599) {
      throw new UnusableAnswer(`it answered with a status that does not exist (${status})`);
    }
    // Of the class of fetch's own answers: a Hono server in this process replaces the global one by
    // another, whose methods cannot be changed, as ky does.
    const Answer = response.constructor as typeof Response;
    const about = { status, statusText, headers };
    if (typeof content === 'string') {
      return Object.defineProperty(new Answer(null, about), 'text', { value: async () => content });
    }
    return new Answer(content.byteLength === 0 ? null : content, about);
  };
}

async function contentOf(response: Response, bytesMax: number, bodies: BodiesRead) {
  if (bodies === 'of-failures') return readReason(response);
  const chunks = bounded(response, bytesMax);
  return bodies === 'as-text' ? text(chunks) : buffer(chunks);
}

async function* bounded({ body }: Response, bytesMax: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop closes the connection.
    if (bytes > bytesMax) {
      throw new UnusableAnswer(`its answer is larger than ${bytesMax} bytes`);
    }
    yield chunk;
  }
}

async function readReason({ ok, body }: Response): Promise<Buffer<ArrayBuffer>> {
  if (!ok) return Buffer.concat(await readBeginning(body, { timeoutMs: reasonTimeoutMs }));
  // Closes the connection.
  body?.cancel().catch(() => undefined);
  return Buffer.alloc(0);
}
