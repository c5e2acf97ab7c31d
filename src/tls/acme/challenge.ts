/** Responses to ACME challenges: their files, and the listeners that serve them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { errorCodeOf } from '../../domain/app-error.ts';
import {
  type HandshakeOnly,
  type KeyPair,
  type Listener,
  startListener,
} from '../../http/listener.ts';
import { type ListenAddress, localUrl } from '../../http/network-address.ts';
import { AcmeProblem } from './problem.ts';
import { acmeFolderName, removeSaved, writeSaved } from './state.ts';

/** base64url (RFC 8555, 8.3); used as a file name. */
const tokenPattern = /^[\w-]{1,200}$/;
const alpnFileName = 'tls-alpn-01.json';
const keyPairSchema = z.object({ cert: z.string(), key: z.string() });

export type ChallengeFolder = ReturnType<typeof openChallengeFolder>;

/**
 * Stores the responses in the data directory, so that any process can serve them: for example the running receiver
 * while a command orders. Writes reject with `unavailable`, and with AcmeProblem for an invalid token.
 */
export function openChallengeFolder(
  dataDir: string,
  /** Called after a response was stored; resolves when all processes that may be asked can serve it. */
  published: () => Promise<void> = async () => undefined,
) {
  const folder = join(dataDir, acmeFolderName, 'challenges');
  const probes = join(dataDir, acmeFolderName, 'knocks');
  const pathOf = (within: string, token: string) => {
    if (!tokenPattern.test(token)) {
      throw new AcmeProblem('malformedAnswer', 'a token violates RFC 8555');
    }
    return join(within, token);
  };
  return {
    /** Stores the text for a token of http-01. */
    put: async (token: string, keyAuthorization: string) => {
      await writeSaved(pathOf(folder, token), keyAuthorization);
      await published();
    },
    /** Stores the certificate for the next handshakes of tls-alpn-01. */
    putAlpn: async (pair: KeyPair) => {
      await writeSaved(join(folder, alpnFileName), pair);
      await published();
    },
    /** Removes all responses, including those of an interrupted order. */
    clear: () => removeSaved(folder),
    /** Like `put`, for our own check of the listener; `clear` does not remove it. */
    putProbe: async (token: string, text: string) => writeSaved(pathOf(probes, token), text),
    removeProbe: async (token: string) => removeSaved(pathOf(probes, token)),
    /** Returns the text for a token; null for an unknown one. */
    answer: (token: string): string | null => {
      if (!tokenPattern.test(token)) return null;
      return textOf(join(folder, token)) ?? textOf(join(probes, token));
    },
    alpnAnswer: (): KeyPair | null => {
      const text = textOf(join(folder, alpnFileName));
      return text === null ? null : keyPairSchema.parse(JSON.parse(text));
    },
  };
}

/** Reads synchronously: requests are rare, and a handshake cannot wait. */
function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

/** RFC 8555, 8.3. */
export const challengePath = '/.well-known/acme-challenge/';

/** Low limits, as the public port only serves a few small requests. */
const limits = {
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 5_000,
  keepAliveTimeoutMs: 5_000,
  connectionsMax: 100,
};

/** Starts a listener for http-01 challenges only. Rejects with `configuration` when the port cannot be opened. */
export function startChallengeListener(options: {
  listen: ListenAddress;
  challenges: Pick<ChallengeFolder, 'answer'>;
}): Promise<Listener> {
  const { listen, challenges } = options;
  return startListener({
    fetch: ({ method, url }) => {
      const { pathname } = new URL(url);
      const isRead = method === 'GET' || method === 'HEAD';
      const token =
        isRead && pathname.startsWith(challengePath) ? pathname.slice(challengePath.length) : '';
      const text = challenges.answer(token);
      if (text === null) return new Response('Not found.\n', { status: 404 });
      return new Response(text, { headers: { 'content-type': 'application/octet-stream' } });
    },
    listen,
    listenVariable: 'EARSHOT_ACME_HTTP_LISTEN',
    limits,
    onBadRequest: () => new Response(null, { status: 400 }),
  });
}

/** Returns the tls-alpn-01 settings of a listener on the public port (RFC 8737). */
export function alpnAnswers(challenges: Pick<ChallengeFolder, 'alpnAnswer'>): HandshakeOnly {
  return { protocol: 'acme-tls/1', keyPair: () => challenges.alpnAnswer() };
}

/** Listener that an order opens on demand; `open` has no effect while it is open. */
export interface ChallengeListener {
  /** Rejects with `configuration` while the port cannot be opened. */
  open(challenges: ChallengeFolder): Promise<void>;
  close(): Promise<void>;
}

const graceMs = 1_000;
const probeTimeoutMs = 3_000;

/** Dependencies of a probe; `newId` returns an unguessable text. */
export interface ProbeDeps {
  fetch: typeof fetch;
  newId: () => string;
}

/**
 * Creates the listener for http-01. The port may be in use by a receiver on the same data directory, which serves the
 * responses of all processes. With `probe`, a request checks this, and the listener then counts as open.
 */
export function createChallengeListener(
  listen: ListenAddress,
  probe: ProbeDeps | null,
): ChallengeListener {
  const own = openedOnce((challenges) => startChallengeListener({ listen, challenges }));
  return {
    open: (challenges) =>
      own.open(challenges).catch(async (error: unknown) => {
        if (probe === null || !(await servesOurChallenges(listen, challenges, probe))) throw error;
      }),
    close: own.close,
  };
}

/**
 * Creates the listener for tls-alpn-01 in a command: the public port, for the challenge only. A port in use is
 * assumed to be the receiver's, which answers the challenge.
 */
export function createHandshakeListener(listen: ListenAddress): ChallengeListener {
  return openedOnce((challenges) =>
    startListener({
      fetch: () => new Response(null, { status: 503 }),
      listen,
      listenVariable: 'EARSHOT_LISTEN',
      keyPair: null,
      handshakeOnly: alpnAnswers(challenges),
    }).catch((error: unknown) => {
      if (isPortInUse(error)) return null;
      throw error;
    }),
  );
}

/** For a challenge type that needs no separate listener. */
export const noListener: ChallengeListener = {
  open: async () => undefined,
  close: async () => undefined,
};

function openedOnce(
  start: (challenges: ChallengeFolder) => Promise<Listener | null>,
): ChallengeListener {
  let opening: Promise<Listener | null> | undefined;
  return {
    open: async (challenges) => {
      opening ??= start(challenges);
      try {
        await opening;
      } catch (error) {
        opening = undefined;
        throw error;
      }
    },
    close: async () => {
      await (await opening?.catch(() => null))?.close(graceMs);
      opening = undefined;
    },
  };
}

async function servesOurChallenges(
  listening: ListenAddress,
  challenges: ChallengeFolder,
  { fetch: ask, newId }: ProbeDeps,
): Promise<boolean> {
  const token = `knock-${newId()}`;
  // Different from the token, as a server may return the path of the request.
  const text = newId();
  await challenges.putProbe(token, text);
  try {
    const signal = AbortSignal.timeout(probeTimeoutMs);
    const url = `${localUrl(listening)}${challengePath}${token}`;
    const answer = await ask(url, { signal, redirect: 'manual' });
    return answer.ok && (await answer.text()) === text;
  } catch {
    return false;
  } finally {
    await challenges.removeProbe(token);
  }
}

function isPortInUse(error: unknown): boolean {
  return error instanceof Error && errorCodeOf(error.cause) === 'EADDRINUSE';
}
