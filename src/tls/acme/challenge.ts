/** Answers to an authority's challenges: on disk, and the listeners that give them. */
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
import { hostInUrl, type ListenAddress, loopbackOf } from '../../http/network-address.ts';
import { AcmeProblem } from './problem.ts';
import { acmeFolderName, removeSaved, writeSaved } from './state.ts';

/** RFC 8555, 8.3: base64url. It becomes a file's name. */
const tokenPattern = /^[\w-]{1,200}$/;
const alpnFileName = 'tls-alpn-01.json';
const keyPairSchema = z.object({ cert: z.string(), key: z.string() });

export type ChallengeFolder = ReturnType<typeof openChallengeFolder>;

/**
 * Keeps the answers in the data directory: whichever program the authority reaches gives them, such as the running
 * receiver while a command orders. Writes reject with `unavailable`, and with AcmeProblem for a bad token.
 */
export function openChallengeFolder(dataDir: string) {
  const folder = join(dataDir, acmeFolderName, 'challenges');
  const knocks = join(dataDir, acmeFolderName, 'knocks');
  const pathOf = (within: string, token: string) => {
    if (!tokenPattern.test(token)) {
      throw new AcmeProblem('malformedAnswer', 'a token is not as RFC 8555 has it');
    }
    return join(within, token);
  };
  return {
    /** For http-01: the text for a token. */
    put: async (token: string, keyAuthorization: string) =>
      writeSaved(pathOf(folder, token), keyAuthorization),
    /** For tls-alpn-01: the certificate that the next handshakes are answered with. */
    putAlpn: (pair: KeyPair) => writeSaved(join(folder, alpnFileName), pair),
    /** Removes all answers to an authority, those that an interrupted order left behind, too. */
    clear: () => removeSaved(folder),
    /** As `put`, for a program of ours that checks who answers; `clear` leaves it alone. */
    putProbe: async (token: string, text: string) => writeSaved(pathOf(knocks, token), text),
    removeProbe: async (token: string) => removeSaved(pathOf(knocks, token)),
    /** The text for a token; null for one that nobody expects. */
    answer: (token: string): string | null => {
      if (!tokenPattern.test(token)) return null;
      return textOf(join(folder, token)) ?? textOf(join(knocks, token));
    },
    alpnAnswer: (): KeyPair | null => {
      const text = textOf(join(folder, alpnFileName));
      return text === null ? null : keyPairSchema.parse(JSON.parse(text));
    },
  };
}

/** Read synchronously: these are requested a few times in months, and a handshake cannot wait. */
function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

/** RFC 8555, 8.3. */
export const challengePath = '/.well-known/acme-challenge/';

/** An open port for a handful of small requests. */
const limits = {
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 5_000,
  keepAliveTimeoutMs: 5_000,
  connectionsMax: 100,
};

/** Answers http-01 challenges, and nothing else. Rejects with `configuration` when the port cannot be opened. */
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

/** How a listener on the public port answers tls-alpn-01 (RFC 8737). */
export function alpnAnswers(challenges: Pick<ChallengeFolder, 'alpnAnswer'>): HandshakeOnly {
  return { protocol: 'acme-tls/1', keyPair: () => challenges.alpnAnswer() };
}

/** A listener that an order opens when it needs it; a call of `open` while it is open does nothing. */
export interface ChallengeListener {
  /** Rejects with `configuration` while the port cannot be opened. */
  open(challenges: ChallengeFolder): Promise<void>;
  close(): Promise<void>;
}

const graceMs = 1_000;
const knockTimeoutMs = 3_000;

/** Dependencies of a knock; `newId` gives a text that nobody guesses. */
export interface ProbeDeps {
  fetch: typeof fetch;
  newId: () => string;
}

/**
 * For http-01. The port may be taken by a receiver on the same data directory, which answers for every program
 * there. With an `asker`, a request to it checks that, and then counts as open.
 */
export function createChallengeListener(
  listen: ListenAddress,
  asker: ProbeDeps | null,
): ChallengeListener {
  const own = openedOnce((challenges) => startChallengeListener({ listen, challenges }));
  return {
    open: (challenges) =>
      own.open(challenges).catch(async (error: unknown) => {
        if (asker === null || !(await answersForUs(listen, challenges, asker))) throw error;
      }),
    close: own.close,
  };
}

/**
 * For tls-alpn-01 in a command: the public port, with nothing behind it but the answer. A port that is taken is
 * assumed to be the receiver's, which answers.
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
      if (isTaken(error)) return null;
      throw error;
    }),
  );
}

/** For a kind of challenge that needs no listener of its own. */
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

async function answersForUs(
  { host, port }: ListenAddress,
  challenges: ChallengeFolder,
  { fetch: ask, newId }: ProbeDeps,
): Promise<boolean> {
  const token = `knock-${newId()}`;
  // Not the token: a server may echo the path of the request.
  const text = newId();
  await challenges.putProbe(token, text);
  try {
    const signal = AbortSignal.timeout(knockTimeoutMs);
    const origin = `http://${hostInUrl(loopbackOf(host))}:${port}`;
    const answer = await ask(`${origin}${challengePath}${token}`, { signal, redirect: 'manual' });
    return answer.ok && (await answer.text()) === text;
  } catch {
    return false;
  } finally {
    await challenges.removeProbe(token);
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && errorCodeOf(error.cause) === 'EADDRINUSE';
}
