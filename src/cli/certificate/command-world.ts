/** What a command needs that orders beside a receiver, or without one. */
import type { AcmeCommandConfig } from '../../config/tls-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import { type AcmeWorld, openAcmeWorld } from '../../tls/acme/acme-world.ts';
import { createHandshakeDoor, createSharedDoor } from '../../tls/acme/challenge-door.ts';
import type { Io } from '../io.ts';

/** For another program that is getting the same certificate at this moment. */
export const lockWaitMs = 300_000;

/** Runs `work`, and closes what it has opened. */
export async function withAcmeWorld<Value>(
  { acme, dataDir, listen }: AcmeCommandConfig,
  io: Io,
  work: (world: AcmeWorld, takeLock: ReturnType<typeof createTakeLock>) => Promise<Value>,
): Promise<Value> {
  const door =
    acme.challenge === 'http-01'
      ? createSharedDoor(acme.httpListen, io)
      : createHandshakeDoor(listen);
  const tell = (line: string) => void io.stderr.write(`${line}\n`);
  const { nowUs, random, signal } = io;
  const world = openAcmeWorld({
    settings: acme,
    dataDir,
    openDoor: (challenges) => door.open(challenges),
    log: { error: (fields, message) => tell(`${message}: ${'reason' in fields && fields.reason}`) },
    tell: (step) => tell(`… ${step}`),
    nowUs,
    random,
    signal,
  });
  try {
    return await work(world, createTakeLock(dataDir));
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new AppError('cancelled', 'Ended. The next try takes up the order where it stands.');
  } finally {
    await door.close();
  }
}
