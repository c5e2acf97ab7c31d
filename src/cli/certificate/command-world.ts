/** What a command needs that orders beside a receiver, or without one. */
import type { AcmeCommandConfig } from '../../config/tls-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { createTakeLock } from '../../store/process-lock.ts';
import { createChallengeListener, createHandshakeListener } from '../../tls/acme/challenge.ts';
import { type AcmeContext, openAcmeContext } from '../../tls/acme/order.ts';
import type { Io } from '../io.ts';

/** For another program that is getting the same certificate at this moment. */
export const lockWaitMs = 300_000;

/** Runs `work`, and closes what it has opened. */
export async function withAcmeContext<Value>(
  { acme, dataDir, listen }: AcmeCommandConfig,
  io: Io,
  work: (context: AcmeContext, takeLock: ReturnType<typeof createTakeLock>) => Promise<Value>,
): Promise<Value> {
  const listener =
    acme.challenge === 'http-01'
      ? createChallengeListener(acme.httpListen, io)
      : createHandshakeListener(listen);
  const tell = (line: string) => void io.stderr.write(`${line}\n`);
  const { nowUs, random, signal } = io;
  const context = openAcmeContext({
    settings: acme,
    dataDir,
    openListener: (challenges) => listener.open(challenges),
    log: { error: (fields, message) => tell(`${message}: ${'reason' in fields && fields.reason}`) },
    report: (step) => tell(`… ${step}`),
    nowUs,
    random,
    signal,
  });
  try {
    return await work(context, createTakeLock(dataDir));
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new AppError('cancelled', 'Ended. The next try takes up the order where it stands.');
  } finally {
    await listener.close();
  }
}
