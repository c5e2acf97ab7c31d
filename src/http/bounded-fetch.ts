/** A `fetch` for services of others: whole answers within bounds, and no redirects. */

/** No answer that earshot asks for comes near this. */
export const answerBytesMax = 2 ** 20;

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
 * service points. Rejects as `fetch` does, and with UnusableAnswer for more than `answerBytesMax`.
 */
export function createBoundedFetch(send: typeof fetch): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, { ...init, redirect: 'manual' });
    request.headers.set('user-agent', 'earshot');
    const response = await send(request);
    const { status, statusText } = response;
    // A copy, as those of an answer cannot be changed.
    const headers = new Headers(response.headers);
    const body = await readBounded(response);
    if (status < 200 || status > 599) {
      throw new UnusableAnswer(`it answered with a status that does not exist (${status})`);
    }
    // Of the class of fetch's own answers: a Hono server in this process replaces the global one by
    // another, whose methods cannot be changed, as ky does.
    const Answer = response.constructor as typeof Response;
    return new Answer(body.byteLength === 0 ? null : body, { status, statusText, headers });
  };
}

async function readBounded({ body }: Response) {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop closes the connection.
    if (bytes > answerBytesMax) {
      throw new UnusableAnswer(`its answer is larger than ${answerBytesMax} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
