/** Answers that are compressed by gzip for clients that accept that. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const zip = promisify(gzip);

/** Answers with a body. Compresses at once: as a stream of parts, it costs the main thread more. */
export async function zippedAnswer(
  acceptEncoding: string | null | undefined,
  body: string | Uint8Array<ArrayBuffer>,
  init: { status?: number; headers: object },
): Promise<Response> {
  const headers = { ...init.headers, Vary: 'Accept-Encoding' };
  if (!/\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(acceptEncoding ?? ''))
    return new Response(body, { ...init, headers });
  const encoded = { ...headers, 'Content-Encoding': 'gzip' };
  return new Response(await zip(body), { ...init, headers: encoded });
}
