/** Opens the door that authorities knock at for http-01 challenges, and keeps it open. */
import { randomUUID } from 'node:crypto';
import type { ListenAddress, Listener } from '../../http/listener.ts';
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

/**
 * For a command beside a receiver: where the port is taken, the one who has it may be that receiver,
 * which answers for every program on its data directory. A knock tells.
 */
export function createSharedDoor(listen: ListenAddress, ask: typeof fetch): ChallengeDoor {
  const own = createChallengeDoor(listen);
  return {
    open: (challenges) =>
      own.open(challenges).catch(async (error: unknown) => {
        if (!(await answersForUs(listen, challenges, ask))) throw error;
      }),
    close: () => own.close(),
  };
}

async function answersForUs(
  { host, port }: ListenAddress,
  challenges: ChallengeFolder,
  ask: typeof fetch,
): Promise<boolean> {
  const token = `knock-${randomUUID()}`;
  await challenges.put(token, token);
  try {
    const signal = AbortSignal.timeout(knockTimeoutMs);
    const answer = await ask(`http://${loopbackOf(host)}:${port}${challengePath}${token}`, {
      signal,
      redirect: 'manual',
    });
    return answer.ok && (await answer.text()) === token;
  } catch {
    return false;
  } finally {
    await challenges.remove(token);
  }
}

/** Where an address that means all of this machine's can be reached. */
function loopbackOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/** The same for a kind of challenge that needs no door of its own. */
export const noDoor: ChallengeDoor = {
  open: async () => undefined,
  close: async () => undefined,
};
