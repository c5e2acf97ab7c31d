/** Looks after the certificate of a running receiver: gets the first one, renews it, swaps it in. */

import { setTimeout as delay } from 'node:timers/promises';
import type { TakeLock } from '../../domain/administration.ts';
import { errorText, isAppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { OwnCertificate } from './acme-folder.ts';
import type { AcmeWorld } from './acme-world.ts';
import { isFor } from './certificate-order.ts';
import { type Renewal, renew } from './renew.ts';
import { isAdviceOld, refreshAdvice } from './renewal-advice.ts';
import { lastFailureText } from './renewal-state.ts';

/**
 * How often the clock and the file are looked at. Short, so that what a command has renewed is soon
 * served, and that sleep and a clock that jumps are noticed; a look costs no request.
 */
const lookEveryMs = 10_000;

export interface RenewalLoopOptions {
  world: AcmeWorld;
  /** What is being served; null before the first certificate. */
  current: OwnCertificate | null;
  takeLock: TakeLock;
  onCertificate: (certificate: OwnCertificate) => void;
  log: Logger;
  lookEveryMs?: number;
}

export interface RenewalLoop {
  /** Ends what is under way; the next start takes it up. */
  stop(): Promise<void>;
}

/** `world.signal` must be the loop's own: `stop` aborts it. */
export function startRenewalLoop(
  options: RenewalLoopOptions,
  stopper: AbortController,
): RenewalLoop {
  const ended = run(options, stopper.signal);
  return {
    stop: async () => {
      stopper.abort();
      await ended;
    },
  };
}

async function run(options: RenewalLoopOptions, signal: AbortSignal): Promise<void> {
  const pauseMs = options.lookEveryMs ?? lookEveryMs;
  const look = createLook(options);
  while (!signal.aborted) {
    await look();
    await delay(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

/** One look; never rejects. */
function createLook({ world, current, takeLock, onCertificate, log }: RenewalLoopOptions) {
  let seen = current?.cert;
  const tell = createTeller(world, log);
  return async () => {
    try {
      const certificate = await world.folder.readCertificate();
      if (certificate !== null && certificate.cert !== seen) {
        // One that a program with other settings got is better than none, and no better than ours.
        if (seen === undefined || isFor(certificate, world.settings)) onCertificate(certificate);
        seen = certificate.cert;
      }
      await world.openDoor().then(tell.open, tell.closed);
      if (certificate !== null) await askAdvice(world, certificate, takeLock, log);
      const due = { when: 'due', takeLock, lockWaitMs: 0, onIssued: onCertificate } as const;
      const renewal = await renew(world, due);
      if (renewal.outcome === 'renewed') seen = renewal.certificate.cert;
      await tell.renewal(renewal);
    } catch (error) {
      // Another program is at it; or this one ends.
      if (isAppError(error, 'conflict') || world.signal.aborted) return;
      await tell.failure(error);
    }
  };
}

/** Looks are many: what stays the same is told once. */
function createTeller({ states }: AcmeWorld, log: Logger) {
  const told = { door: '', renewal: '' };
  const once = (topic: keyof typeof told, key: string, tell: () => void) => {
    if (key !== told[topic]) tell();
    told[topic] = key;
  };
  const dateOf = (atUs: number | null) => (atUs === null ? undefined : new Date(atUs / 1000));
  return {
    open: () => {
      told.door = '';
    },
    closed: (error: unknown) => {
      const reason = errorText(error);
      once('door', reason, () => log.error({ reason }, 'challenges cannot be answered'));
    },
    renewal: async (renewal: Renewal) => {
      if (renewal.outcome !== 'waiting' || renewal.because === 'fresh') {
        // What fails after this is news, even in the same words.
        told.renewal = '';
        return;
      }
      const state = await states.read();
      const { failures } = state;
      const reason = lastFailureText(state) ?? undefined;
      const fields = { reason, failures, nextTry: dateOf(renewal.untilUs) };
      const words =
        renewal.because === 'capped'
          ? 'a certificate is due, and the limit of the day is reached'
          : 'a certificate is due; `earshot certificate renew` does not wait';
      once('renewal', `${failures} ${reason}`, () => log.warn(fields, words));
    },
    failure: async (error: unknown) => {
      const reason = errorText(error);
      const { failures, nextTryAtUs } = await states
        .read()
        .catch(() => ({ failures: 0, nextTryAtUs: null }));
      const isOurs = isAppError(error) && !isAppError(error, 'internal');
      const fields = { reason, failures, nextTry: dateOf(nextTryAtUs) };
      once('renewal', `${failures} ${reason}`, () =>
        log.error(
          isOurs ? fields : { ...fields, err: error },
          'getting a certificate failed; what is served stays in use',
        ),
      );
    },
  };
}

async function askAdvice(
  world: AcmeWorld,
  certificate: OwnCertificate,
  takeLock: TakeLock,
  log: Logger,
): Promise<void> {
  const isOld = async () => {
    const state = await world.states.read();
    return isAdviceOld(state, certificate, world.nowUs()) ? state : null;
  };
  if (!isFor(certificate, world.settings) || (await isOld()) === null) return;
  const release = await takeLock('certificate', { waitMs: 0 });
  try {
    const state = await isOld();
    if (state !== null) await refreshAdvice(world, state, certificate);
  } catch (problem) {
    const reason = errorText(problem);
    log.debug({ reason }, 'the authority cannot be asked when to renew; it goes by lifetime');
  } finally {
    release();
  }
}
