/** Renews the certificate when it is due, once or in the loop of a running receiver, and records the result. */
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
   * `due`: when it is time. `asked`: when it is time, and at once after failures. `anyway`: also when
   * it is not. The limit per day holds for all.
   */
  when: 'due' | 'asked' | 'anyway';
  acquireLock: AcquireLock;
  /** How long to wait for another program that is ordering. */
  lockWaitMs: number;
  /** Called as soon as there is a new certificate, before it is saved. */
  onIssued: (certificate: OwnCertificate) => void;
}

/**
 * Rejects with `conflict` while another program orders, and with what explains a failure, which has
 * been noted for the next try by then.
 */
export async function renew(context: AcmeContext, options: RenewOptions): Promise<Renewal> {
  // Most looks end here, without lock or network.
  const early = await look(context, options.when);
  if (early !== null) return early;
  const seen = await context.folder.readCertificate();
  const release = await acquireCertificateLock(context, options);
  try {
    // Another program may have done it while this one waited.
    const certificate = await context.folder.readCertificate();
    const isNews = certificate?.cert !== seen?.cert;
    const late = await look(context, isNews ? 'due' : options.when);
    return late ?? (await attempt(context, options, certificate));
  } finally {
    release();
  }
}

/** The lock for who orders. Rejects with `conflict` when another has it for longer than the wait. */
export async function acquireCertificateLock(
  { report, signal }: Pick<AcmeContext, 'report' | 'signal'>,
  { acquireLock, lockWaitMs }: Pick<RenewOptions, 'acquireLock' | 'lockWaitMs'>,
): Promise<() => void> {
  return acquireLock('certificate', { waitMs: 0 }).catch((error: unknown) => {
    if (lockWaitMs === 0 || !isAppError(error, 'conflict')) throw error;
    report('another program is getting a certificate; waiting for it');
    return acquireLock('certificate', { waitMs: lockWaitMs, signal });
  });
}

/** Null when there is something to do. */
async function look(context: AcmeContext, when: RenewOptions['when']): Promise<Renewal | null> {
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
  // What was issued by an order that is in the count already may be fetched.
  if (cappedUntilUs !== null && !(await pendingOrder(context))?.isCounted) {
    if (when === 'due') return { outcome: 'waiting', because: 'capped', untilUs: cappedUntilUs };
    throw capped(cappedUntilUs);
  }
  if (when !== 'due' || !isWaiting(state, nowUs)) return null;
  return { outcome: 'waiting', because: 'failed', untilUs: state.nextTryAtUs ?? nowUs };
}

/** The order on disk, when it is of this authority for this name. */
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
    const certificate = await checked(saved, old, context);
    options.onIssued(certificate);
    await folder.writeCertificate(saved);
    await states.write(afterSuccess(await states.read(), nowUs()));
    await folder.removeOrder();
    return { outcome: 'renewed', certificate };
  } catch (error) {
    // The program is ending: that is nobody's failure, and the next start takes up the order.
    if (context.signal.aborted) throw error;
    throw await noteFailure(error, context);
  }
}

/** What comes before a new order. One that can be taken up needs none of it: it may be fetched already. */
async function prepare(context: AcmeContext, old: OwnCertificate | null): Promise<void> {
  const { folder, states, nowUs } = context;
  // Left by a program that was ended after it had saved its certificate.
  if (old !== null && (await folder.readOrder())?.key === old.key) await folder.removeOrder();
  if ((await pendingOrder(context)) !== null) return;
  await context.openListener();
  const { lastFailure, failures } = await states.read();
  const isWarned = failures > 0 && lastFailure?.isProof === true;
  // Near the end, what a rehearsal would spare no longer counts.
  if (isWarned && !isNearEnd(old, nowUs())) await testOrderAtStaging(context);
}

async function noteFailure(
  error: unknown,
  { states, settings, nowUs, random }: AcmeContext,
): Promise<AppError> {
  const state = await states.read();
  const explained = explainFailure(error, settings);
  const retryAfterMs = error instanceof AcmeProblem ? error.retryAfterMs : null;
  const failed = { nowUs: nowUs(), retryAfterMs, random };
  const nextTryAtUs = retryTime(state.failures + 1, failed);
  const isProof = isChallengeProblem(explained.cause);
  const failure = { nowUs: failed.nowUs, words: explained, isProof, nextTryAtUs };
  await states.write(afterFailure(state, failure));
  return explained;
}

/** Only an authority that gives advice wants to know which certificate this one follows. */
function replacedBy(
  { renewalInfo }: Directory,
  old: OwnCertificate | null,
  { settings }: AcmeContext,
): string | null {
  if (renewalInfo === undefined || old === null || !isFor(old, settings)) return null;
  return certificateIdOf(old.cert);
}

/** An order whose certificate is of no use is not fetched again. */
async function checked(
  saved: SavedCertificate,
  old: OwnCertificate | null,
  { folder, settings: { host }, nowUs }: AcmeContext,
): Promise<OwnCertificate> {
  try {
    const certificate = ownCertificate(saved, 'what the authority has issued');
    const refuse = (detail: string) => new AcmeProblem('unusableCertificate', detail);
    if (!certificate.covers(host)) throw refuse(`it is not for ${host}`);
    // Where the one before is over, too, the clock here may be the one that is wrong.
    const isOver = (one: OwnCertificate | null) =>
      one === null || one.notAfter.getTime() * 1000 <= nowUs();
    if (isOver(certificate) && !isOver(old)) throw refuse('it is over already');
    return certificate;
  } catch (problem) {
    await folder.removeOrder();
    throw problem;
  }
}

function capped(untilUs: number): AppError {
  const until = new Date(untilUs / 1000).toISOString();
  return new AppError(
    'unavailable',
    'So many certificates were issued within 24 hours that the authority might refuse more.',
    { advice: `The next one can be ordered after ${until}.` },
  );
}

/** Short: what a command has renewed is soon served, and a clock that jumps is noticed. A check costs no request. */
const checkEveryMs = 10_000;

interface RenewalLoopOptions {
  context: AcmeContext;
  /** What is being served; null before the first certificate. */
  current: OwnCertificate | null;
  acquireLock: AcquireLock;
  onCertificate: (certificate: OwnCertificate) => void;
  log: Logger;
  checkEveryMs?: number;
}

/**
 * Keeps the certificate of a running receiver: gets the first one, renews it, applies it. `context.signal` must be
 * that of `stopper`: `stop` aborts what is in progress, and the next start resumes it.
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

/** One check; never rejects. */
function createCheck({ context, current, acquireLock, onCertificate, log }: RenewalLoopOptions) {
  let seen = current?.cert;
  const logged = createRenewalLog(context, log);
  return async () => {
    try {
      const certificate = await context.folder.readCertificate();
      if (certificate !== null && certificate.cert !== seen) {
        // One that a program with other settings got is better than none, and no better than ours.
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
      // Another program is at it; or this one ends.
      if (isAppError(error, 'conflict') || context.signal.aborted) return;
      await logged.failure(error);
    }
  };
}

/** Checks are many: what stays the same is logged once. */
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
      once('listener', reason, () => log.error({ reason }, 'challenges cannot be answered'));
    },
    renewal: async (renewal: Renewal) => {
      if (renewal.outcome !== 'waiting' || renewal.because === 'fresh') {
        // What fails after this is news, even in the same words.
        logged.renewal = '';
        return;
      }
      const state = await states.read();
      const { failures } = state;
      const reason = lastFailureText(state) ?? undefined;
      const fields = { reason, failures, nextTry: dateOf(renewal.untilUs) };
      const message =
        renewal.because === 'capped'
          ? 'a certificate is due, and the limit of the day is reached'
          : 'a certificate is due; `earshot certificate renew` does not wait';
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
        log.error(
          isOurs ? fields : { ...fields, err: error },
          'getting a certificate failed; what is served stays in use',
        ),
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
    log.debug({ reason }, 'the authority cannot be asked when to renew; it goes by lifetime');
  } finally {
    release();
  }
}
