/** Response to the current ACME challenge: one file, which any process on the port of the challenge serves. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { readOwnerOnly } from '../../core/host/files.ts';
import { type HandshakeOnly, type Listener, startListener } from '../../core/http/listener.ts';
import { type ListenAddress, localUrl } from '../../core/http/network-address.ts';
import { errorCodeOf } from '../../core/terms/app-error.ts';
import { jsonOf } from '../../core/terms/text.ts';
import { challengePath, writeSaved } from './renewal.ts';
import type { AcmeConfig } from './settings.ts';

const responseSchema = z.object({
  token: z.string(),
  /** Text for http-01 (RFC 8555, 8.3). */
  text: z.string(),
  /** Certificate for tls-alpn-01 (RFC 8737). */
  alpn: z.object({ cert: z.string(), key: z.string() }),
});
type ChallengeResponse = z.infer<typeof responseSchema>;

/** Place of responses, and the processes that serve them. */
export interface ChallengePlace {
  dataDir: string;
  settings: Pick<AcmeConfig, 'challenge' | 'httpListen'>;
  /** Address of the public listener. */
  listen: ListenAddress;
  fetch: typeof fetch;
  /** Resolves when all receivers of a shared log can serve the response. */
  published: () => Promise<void>;
}

const pathStart = '/.well-known/acme-challenge/';

/** Reads synchronously: requests are rare, and a handshake cannot wait. */
function readResponse(dataDir: string): ChallengeResponse | null {
  try {
    const text = readOwnerOnly(join(dataDir, challengePath)) ?? '';
    return responseSchema.safeParse(jsonOf(text)).data ?? null;
  } catch {
    return null;
  }
}

/** Starts a listener for http-01 challenges only. Rejects with `configuration` when the port cannot be opened. */
export function startChallengeListener(
  dataDir: string,
  { httpListen }: Pick<AcmeConfig, 'httpListen'>,
): Promise<Listener> {
  return startListener({
    fetch: ({ url }) => {
      const { token, text } = readResponse(dataDir) ?? {};
      if (token === undefined || new URL(url).pathname !== `${pathStart}${token}`) {
        return new Response('Not found.\n', { status: 404 });
      }
      return new Response(text, { headers: { 'content-type': 'application/octet-stream' } });
    },
    listen: httpListen,
    listenVariable: 'EARSHOT_ACME_HTTP_LISTEN',
    onBadRequest: () => new Response(null, { status: 400 }),
  });
}

/** Returns the tls-alpn-01 settings of a listener on the public port. */
export function alpnAnswers(dataDir: string): HandshakeOnly {
  const keyPair = () => readResponse(dataDir)?.alpn ?? null;
  return { protocol: 'acme-tls/1', keyPair };
}

/**
 * Returns functions that serve a response, by this process or by another one that has the port, and that end it.
 * `serve` rejects with `configuration` when another program has the port.
 */
export function createResponder(place: ChallengePlace) {
  const path = join(place.dataDir, challengePath);
  let listener: Listener | null = null;
  return {
    serve: async (response: ChallengeResponse) => {
      await writeSaved(path, response);
      listener = await openListener(place, response);
      await place.published();
    },
    end: async () => {
      await listener?.close(0);
      await rm(path, { force: true });
    },
  };
}

/** Resolves with null if another process on the port serves our responses. */
async function openListener(
  { dataDir, settings, listen, fetch: ask }: ChallengePlace,
  { token, text }: ChallengeResponse,
): Promise<Listener | null> {
  const isHttp = settings.challenge === 'http-01';
  try {
    if (isHttp) return await startChallengeListener(dataDir, settings);
    return await startListener({
      ...{ listen, listenVariable: 'EARSHOT_LISTEN', fetch: () => new Response(null) },
      ...{ keyPair: null, handshakeOnly: alpnAnswers(dataDir) },
    });
  } catch (error) {
    if (!(error instanceof Error) || errorCodeOf(error.cause) !== 'EADDRINUSE') throw error;
    // The public port is assumed to be the receiver's: a handshake without certificate shows nothing.
    if (!isHttp) return null;
    const url = `${localUrl(settings.httpListen)}${pathStart}${token}`;
    const options = { signal: AbortSignal.timeout(10_000), redirect: 'manual' } as const;
    const asked = ask(url, options).then((response) => response.text());
    if ((await asked.catch(() => null)) === text) return null;
    throw error;
  }
}
