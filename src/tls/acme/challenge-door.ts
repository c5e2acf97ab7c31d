/** Opens the door at which an authority knocks to see whether the name is ours. */
import { hostInUrl, type ListenAddress, loopbackOf } from '../../http/listen-address.ts';
import { type HandshakeOnly, type Listener, startListener } from '../../http/listener.ts';
import type { ChallengeFolder } from './challenge-folder.ts';
import { challengePath, startChallengeListener } from './challenge-listener.ts';

export interface ChallengeDoor {
  /** Rejects with `configuration` while the port cannot be opened. */
  open(challenges: ChallengeFolder): Promise<void>;
  close(): Promise<void>;
}

const graceMs = 1_000;
const knockTimeoutMs = 3_000;

/** Of one program: a call of `open` while it is open does nothing. */
export function createChallengeDoor(listen: ListenAddress): ChallengeDoor {
  let opening: Promise<Listener> | undefined;
  return {
    open: async (challenges) => {
      opening ??= startChallengeListener({ listen, challenges });
      try {
        await opening;
      } catch (error) {
        opening = undefined;
        throw error;
      }
    },
    close: async () => {
      await (await opening?.catch(() => undefined))?.close(graceMs);
      opening = undefined;
    },
  };
}

/** What a knock takes; `newId` gives a text that nobody guesses. */
export interface Asker {
  fetch: typeof fetch;
  newId: () => string;
}

/**
 * For a program beside a receiver: where the port is taken, the one who has it may be that receiver,
 * which answers for every program on its data directory. A knock tells.
 */
export function createSharedDoor(listen: ListenAddress, asker: Asker): ChallengeDoor {
  const own = createChallengeDoor(listen);
  return {
    open: (challenges) =>
      own.open(challenges).catch(async (error: unknown) => {
        if (!(await answersForUs(listen, challenges, asker))) throw error;
      }),
    close: () => own.close(),
  };
}

async function answersForUs(
  { host, port }: ListenAddress,
  challenges: ChallengeFolder,
  { fetch: ask, newId }: Asker,
): Promise<boolean> {
  const token = `knock-${newId()}`;
  // Not the token, which any server may give back that shows the path it was asked for.
  const text = newId();
  await challenges.putKnock(token, text);
  try {
    const signal = AbortSignal.timeout(knockTimeoutMs);
    const door = `http://${hostInUrl(loopbackOf(host))}:${port}`;
    const answer = await ask(`${door}${challengePath}${token}`, { signal, redirect: 'manual' });
    return answer.ok && (await answer.text()) === text;
  } catch {
    return false;
  } finally {
    await challenges.removeKnock(token);
  }
}

/**
 * For a command, and tls-alpn-01: the public port, with nothing behind it but the answer. Where it is
 * taken, the receiver is thought to run there, and answers.
 */
export function createHandshakeDoor(listen: ListenAddress): ChallengeDoor {
  let opening: Promise<Listener | null> | undefined;
  return {
    open: async (challenges) => {
      opening ??= startListener({
        fetch: () => new Response(null, { status: 503 }),
        listen,
        listenVariable: 'EARSHOT_LISTEN',
        keyPair: null,
        handshakeOnly: alpnAnswers(challenges),
      }).catch((error: unknown) => {
        if (isTaken(error)) return null;
        opening = undefined;
        throw error;
      });
      await opening;
    },
    close: async () => {
      await (await opening?.catch(() => null))?.close(graceMs);
      opening = undefined;
    },
  };
}

/** How a listener on the public port answers tls-alpn-01 (RFC 8737). */
export function alpnAnswers(challenges: Pick<ChallengeFolder, 'alpnAnswer'>): HandshakeOnly {
  return { protocol: 'acme-tls/1', keyPair: () => challenges.alpnAnswer() };
}

function isTaken(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE';
}

/** The same for a kind of challenge that needs no door of its own. */
export const noDoor: ChallengeDoor = {
  open: async () => undefined,
  close: async () => undefined,
};
