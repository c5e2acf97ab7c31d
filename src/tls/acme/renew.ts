/** Renews the certificate when it is due, once or in the loop of a running receiver. */
import { setTimeout as delay } from 'node:timers/promises';
import type { AcquireLock } from '../../domain/account.ts';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import { type Directory, openAuthorityAccount } from './authority.ts';
import { type AcmeContext, orderCertificate, testOrderAtStaging } from './order.ts';
import { AcmeProblem, explainFailure, isChallengeProblem } from './problem.ts';
import {
  capEndsAtUs,
  certificateIdOf,
  freshUntilUs,
  isNearEnd,
  isRenewalInfoStale,
  isWaiting,
  type RenewalTime,
  refreshRenewalInfo,
  renewalTime,
  retryTime,
  windowOf,
} from './renewal-time.ts';
import {
  afterFailure,
  afterIssue,
  afterSuccess,
  isFor,
  lastFailureText,
  type OwnCertificate,
  ownCertificate,
  type SavedCertificate,
  type SavedOrder,
} from './state.ts';

/** The result of one check. */
export type Renewal =
  | { outcome: 'current'; certificate: OwnCertificate; due: RenewalTime }
  | { outcome: 'waiting'; because: 'failed' | 'fresh' | 'capped'; untilUs: number }
  | { outcome: 'renewed'; certificate: OwnCertificate };

export interface RenewOptions {
  /**
   * `due`: if it is due. `asked`: if it is due, without the delay after failures. `anyway`: always. The
   * daily maximum applies to all.
   */
  when: 'due' | 'asked' | 'anyway';
  acquireLock: AcquireLock;
  /** Maximum wait for another process that is ordering. */
  lockWaitMs: number;
  /** Called with a new certificate before it is saved. */
  onIssued: (certificate: OwnCertificate) => void;
}

/**
 * Renews the certificate if needed. Rejects with `conflict` while another process orders, and with an explained
 * failure, which is recorded for the delay of the next attempt.
 */
export async function renew(context: AcmeContext, options: RenewOptions): Promise<Renewal> {
  // Most checks end here, without lock or network.
  const early = await checkDue(context, options.when);
  if (early !== null) return early;
  const seen = await context.folder.readCertificate();
  const release = await acquireCertificateLock(context, options);
  try {
    // Another process may have renewed it during the wait.
    const certificate = await context.folder.readCertificate();
    const isNew = certificate?.cert !== seen?.cert;
    const finished = await checkDue(context, isNew ? 'due' : options.when);
    return finished ?? (await attempt(context, options, certificate));
  } finally {
    release();
  }
}

/** Acquires the lock for orders. Rejects with `conflict` when it is held by another for longer than the wait. */
export async function acquireCertificateLock(
  { report, signal }: Pick<AcmeContext, 'report' | 'signal'>,
  { acquireLock, lockWaitMs }: Pick<RenewOptions, 'acquireLock' | 'lockWaitMs'>,
): Promise<() => void> {
  return acquireLock('certificate', { waitMs: 0 }).catch((error: unknown) => {
    if (lockWaitMs === 0 || !isAppError(error, 'conflict')) throw error;
    report('waiting for another process that is ordering a certificate');
    return acquireLock('certificate', { waitMs: lockWaitMs, signal });
  });
}

/** Returns null when a certificate must be ordered now. */
async function checkDue(context: AcmeContext, when: RenewOptions['when']): Promise<Renewal | null> {
  const { folder, states, settings } = context;
  const nowUs = context.nowUs();
  const certificate = await folder.readCertificate();
  const state = await states.read();
  if (when !== 'anyway' && certificate !== null && isFor(certificate, settings)) {
    const due = renewalTime(certificate, windowOf(state, certificate));
    if (nowUs < due.atUs) return { outcome: 'current', certificate, due };
    const freshUs = when === 'due' ? freshUntilUs(state, nowUs, certificate) : null;
    if (freshUs !== null) return { outcome: 'waiting', because: 'fresh', untilUs: freshUs };
  }
  const cappedUntilUs = capEndsAtUs(state, nowUs, certificate);
  // The certificate of an order that is already counted may be downloaded.
  if (cappedUntilUs !== null && !(await pendingOrder(context))?.isCounted) {
    if (when === 'due') return { outcome: 'waiting', because: 'capped', untilUs: cappedUntilUs };
    throw maximumReached(cappedUntilUs);
  }
  if (when !== 'due' || !isWaiting(state, nowUs)) return null;
  return { outcome: 'waiting', because: 'failed', untilUs: state.nextTryAtUs ?? nowUs };
}

/** Returns the saved order, if it is of this authority for this name. */
async function pendingOrder({ folder, settings }: AcmeContext): Promise<SavedOrder | null> {
  const order = await folder.readOrder();
  const isOurs = order?.directoryUrl === settings.directoryUrl && order.host === settings.host;
  return isOurs ? order : null;
}

async function attempt(
  context: AcmeContext,
  options: RenewOptions,
  old: OwnCertificate | null,
): Promise<Renewal> {
  const { folder, states, settings, nowUs } = context;
  try {
    await prepare(context, old);
    const entered = await openAuthorityAccount(context);
    const order = { ...settings, replaces: replacedBy(entered.directory, old, context) };
    const saved = await orderCertificate(order, {
      ...context,
      authority: entered.authority,
      recordIssue: async () => states.write(afterIssue(await states.read(), nowUs())),
    });
    const certificate = await requireUsable(saved, old, context);
    options.onIssued(certificate);
    await folder.writeCertificate(saved);
    await states.write(afterSuccess(await states.read(), nowUs()));
    await folder.removeOrder();
    return { outcome: 'renewed', certificate };
  } catch (error) {
    // The process is ending: this is no failure, and the next start resumes the order.
    if (context.signal.aborted) throw error;
    throw await recordFailure(error, context);
  }
}

/** Prepares a new order: opens the listener, and tests at the staging directory after a failed validation. */
async function prepare(context: AcmeContext, old: OwnCertificate | null): Promise<void> {
  const { folder, states, nowUs } = context;
  // Left by a process that ended after it had saved its certificate.
  if (old !== null && (await folder.readOrder())?.key === old.key) await folder.removeOrder();
  if ((await pendingOrder(context)) !== null) return;
  await context.openListener();
  const { lastFailure, failures } = await states.read();
  const mayFail = failures > 0 && lastFailure?.isProof === true;
  // Close to expiry, a real attempt is more important than the limits of the authority.
  if (mayFail && !isNearEnd(old, nowUs())) await testOrderAtStaging(context);
}

async function recordFailure(
  error: unknown,
  { states, settings, nowUs, random }: AcmeContext,
): Promise<AppError> {
  const state = await states.read();
  const explained = explainFailure(error, settings);
  const retryAfterMs = error instanceof AcmeProblem ? error.retryAfterMs : null;
  const failed = { nowUs: nowUs(), retryAfterMs, random };
  const nextTryAtUs = retryTime(state.failures + 1, failed);
  const isProof = isChallengeProblem(explained.cause);
  const failure = { nowUs: failed.nowUs, error: explained, isProof, nextTryAtUs };
  await states.write(afterFailure(state, failure));
  return explained;
}

/** Returns the id of the replaced certificate; null if the authority has no renewal information. */
function replacedBy(
  { renewalInfo }: Directory,
  old: OwnCertificate | null,
  { settings }: AcmeContext,
): string | null {
  if (renewalInfo === undefined || old === null || !isFor(old, settings)) return null;
  return certificateIdOf(old.cert);
}

/** Checks the certificate. Removes the order of an unusable one, so that it is not downloaded again. */
async function requireUsable(
  saved: SavedCertificate,
  old: OwnCertificate | null,
  { folder, settings: { host }, nowUs }: AcmeContext,
): Promise<OwnCertificate> {
  try {
    const certificate = ownCertificate(saved, 'the issued certificate');
    const unusable = (detail: string) => new AcmeProblem('unusableCertificate', detail);
    if (!certificate.covers(host)) throw unusable(`the certificate is not valid for ${host}`);
    // If the old certificate has expired too, the clock of this machine may be wrong.
    const isExpired = (one: OwnCertificate | null) =>
      one === null || one.notAfter.getTime() * 1000 <= nowUs();
    if (isExpired(certificate) && !isExpired(old)) throw unusable('it has already expired');
    return certificate;
  } catch (problem) {
    await folder.removeOrder();
    throw problem;
  }
}

function maximumReached(untilUs: number): AppError {
  const until = new Date(untilUs / 1000).toISOString();
  return new AppError(
    'unavailable',
    'earshot has ordered its maximum number of certificates in 24 hours. This maximum is lower than the limits of the authority.',
    { advice: `The next order is possible after ${until}.` },
  );
}

/** Short, to serve the renewal of a command and to notice clock changes soon. A check sends no request. */
const checkEveryMs = 10_000;

interface RenewalLoopOptions {
  context: AcmeContext;
  /** The served certificate; null before the first one. */
  current: OwnCertificate | null;
  acquireLock: AcquireLock;
  onCertificate: (certificate: OwnCertificate) => void;
  log: Logger;
  checkEveryMs?: number;
}

/**
 * Orders, renews and applies the certificate of a running receiver. `context.signal` must be that of `stopper`:
 * `stop` aborts an order in progress, and the next start resumes it.
 */
export function startRenewalLoop(options: RenewalLoopOptions, stopper: AbortController) {
  const { signal } = stopper;
  const check = createCheck(options);
  const run = async () => {
    while (!signal.aborted) {
      await check();
      await delay(options.checkEveryMs ?? checkEveryMs, undefined, { signal }).catch(
        () => undefined,
      );
    }
  };
  const ended = run();
  return {
    stop: async (): Promise<void> => {
      stopper.abort();
      await ended;
    },
  };
}

/** Returns a function that runs one check and never rejects. */
function createCheck({ context, current, acquireLock, onCertificate, log }: RenewalLoopOptions) {
  let seen = current?.cert;
  const logged = createRenewalLog(context, log);
  return async () => {
    try {
      const certificate = await context.folder.readCertificate();
      if (certificate !== null && certificate.cert !== seen) {
        // A certificate of other settings is used only if there is none yet.
        if (seen === undefined || isFor(certificate, context.settings)) onCertificate(certificate);
        seen = certificate.cert;
      }
      await context.openListener().then(logged.open, logged.closed);
      if (certificate !== null) await updateRenewalInfo(context, certificate, acquireLock, log);
      const due = { when: 'due', acquireLock, lockWaitMs: 0, onIssued: onCertificate } as const;
      const renewal = await renew(context, due);
      if (renewal.outcome === 'renewed') seen = renewal.certificate.cert;
      await logged.renewal(renewal);
    } catch (error) {
      // Another process is ordering, or this one is ending.
      if (isAppError(error, 'conflict') || context.signal.aborted) return;
      await logged.failure(error);
    }
  };
}

/** Logs repeated results once, as checks are frequent. */
function createRenewalLog({ states }: AcmeContext, log: Logger) {
  const logged = { listener: '', renewal: '' };
  const once = (topic: keyof typeof logged, key: string, write: () => void) => {
    if (key !== logged[topic]) write();
    logged[topic] = key;
  };
  const dateOf = (atUs: number | null) => (atUs === null ? undefined : new Date(atUs / 1000));
  return {
    open: () => {
      logged.listener = '';
    },
    closed: (error: unknown) => {
      const reason = errorText(error);
      once('listener', reason, () => log.error({ reason }, 'failed to open challenge listener'));
    },
    renewal: async (renewal: Renewal) => {
      if (renewal.outcome !== 'waiting' || renewal.because === 'fresh') {
        // A later failure is logged, even with the same text.
        logged.renewal = '';
        return;
      }
      const state = await states.read();
      const { failures } = state;
      const reason = lastFailureText(state) ?? undefined;
      const fields = { reason, failures, nextTry: dateOf(renewal.untilUs) };
      const message =
        renewal.because === 'capped'
          ? 'certificate must be ordered, but daily maximum is reached'
          : 'certificate due; retrying later';
      once('renewal', `${failures} ${reason}`, () => log.warn(fields, message));
    },
    failure: async (error: unknown) => {
      const reason = errorText(error);
      const { failures, nextTryAtUs } = await states
        .read()
        .catch(() => ({ failures: 0, nextTryAtUs: null }));
      const isOurs = isAppError(error) && !isAppError(error, 'internal');
      const fields = { reason, failures, nextTry: dateOf(nextTryAtUs) };
      once('renewal', `${failures} ${reason}`, () =>
        log.error(isOurs ? fields : { ...fields, err: error }, 'failed to order certificate'),
      );
    },
  };
}

async function updateRenewalInfo(
  context: AcmeContext,
  certificate: OwnCertificate,
  acquireLock: AcquireLock,
  log: Logger,
): Promise<void> {
  const isOld = async () => {
    const state = await context.states.read();
    return isRenewalInfoStale(state, certificate, context.nowUs()) ? state : null;
  };
  if (!isFor(certificate, context.settings) || (await isOld()) === null) return;
  const release = await acquireLock('certificate', { waitMs: 0 });
  try {
    const state = await isOld();
    if (state !== null) await refreshRenewalInfo(context, state, certificate);
  } catch (problem) {
    const reason = errorText(problem);
    log.debug({ reason }, 'failed to read renewal information');
  } finally {
    release();
  }
}
