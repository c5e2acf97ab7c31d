/** One look at the certificate: renews it when it is due, and keeps account of what came of it. */
import type { TakeLock } from '../../domain/administration.ts';
import { AppError, isAppError } from '../../domain/app-error.ts';
import { type OwnCertificate, ownCertificate, type SavedCertificate } from './acme-folder.ts';
import { AcmeProblem, isProofProblem } from './acme-problem.ts';
import type { AcmeSettings, AcmeWorld } from './acme-world.ts';
import { certificateIdOf } from './certificate-id.ts';
import { isFor } from './certificate-order.ts';
import { type EnteredAuthority, enterAuthority } from './enter-authority.ts';
import { explainFailure } from './explain-failure.ts';
import { orderCertificate } from './order-certificate.ts';
import { rehearseAtStaging } from './rehearse.ts';
import { windowOf } from './renewal-advice.ts';
import { afterFailure, afterIssue, afterSuccess } from './renewal-state.ts';
import { isNearEnd, type RenewalTime, renewalTime } from './renewal-time.ts';
import { capEndsAtUs, freshUntilUs, isWaiting, nextTryTime } from './retry-time.ts';

/** What came of a look. */
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
  takeLock: TakeLock;
  /** How long to wait for another program that is ordering. */
  lockWaitMs: number;
  /** Called as soon as there is a new certificate, before it is saved. */
  onIssued: (certificate: OwnCertificate) => void;
}

/**
 * Rejects with `conflict` while another program orders, and with what explains a failure, which has
 * been noted for the next try by then.
 */
export async function renew(world: AcmeWorld, options: RenewOptions): Promise<Renewal> {
  // Most looks end here, without lock or network.
  const early = await look(world, options.when);
  if (early !== null) return early;
  const seen = await world.folder.readCertificate();
  const release = await takeTurn(world, options);
  try {
    // Another program may have done it while this one waited.
    const certificate = await world.folder.readCertificate();
    const isNews = certificate?.cert !== seen?.cert;
    const late = await look(world, isNews ? 'due' : options.when);
    return late ?? (await attempt(world, options, certificate));
  } finally {
    release();
  }
}

/** The lock for who orders. Rejects with `conflict` when another has it for longer than the wait. */
export async function takeTurn(
  { tell, signal }: Pick<AcmeWorld, 'tell' | 'signal'>,
  { takeLock, lockWaitMs }: Pick<RenewOptions, 'takeLock' | 'lockWaitMs'>,
): Promise<() => void> {
  return takeLock('certificate', { waitMs: 0 }).catch((error: unknown) => {
    if (lockWaitMs === 0 || !isAppError(error, 'conflict')) throw error;
    tell('another program is getting a certificate; waiting for it');
    return takeLock('certificate', { waitMs: lockWaitMs, signal });
  });
}

/** Null when there is something to do. */
async function look(world: AcmeWorld, when: RenewOptions['when']): Promise<Renewal | null> {
  const { folder, states, settings } = world;
  const nowUs = world.nowUs();
  const certificate = await folder.readCertificate();
  const state = await states.read();
  if (when !== 'anyway' && certificate !== null && isFor(certificate, settings)) {
    const due = renewalTime(certificate, windowOf(state, certificate));
    if (nowUs < due.atUs) return { outcome: 'current', certificate, due };
    const freshUs = when === 'due' ? freshUntilUs(state, nowUs, certificate) : null;
    if (freshUs !== null) return { outcome: 'waiting', because: 'fresh', untilUs: freshUs };
  }
  const cappedUntilUs = capEndsAtUs(state, nowUs, certificate);
  if (cappedUntilUs !== null && !(await isCounted(world))) {
    if (when === 'due') return { outcome: 'waiting', because: 'capped', untilUs: cappedUntilUs };
    throw capped(cappedUntilUs);
  }
  if (when !== 'due' || !isWaiting(state, nowUs)) return null;
  return { outcome: 'waiting', because: 'failed', untilUs: state.nextTryAtUs ?? nowUs };
}

/** True when the order on disk is in the count already: what was issued by it may be fetched. */
async function isCounted({ folder, settings }: AcmeWorld): Promise<boolean> {
  const order = await folder.readOrder();
  const isOurs = order?.directoryUrl === settings.directoryUrl && order.host === settings.host;
  return isOurs && order.isCounted;
}

async function attempt(
  world: AcmeWorld,
  options: RenewOptions,
  old: OwnCertificate | null,
): Promise<Renewal> {
  const { folder, states, settings, nowUs } = world;
  try {
    await prepare(world, old);
    const entered = await enterAuthority(world);
    const order = { ...settings, replaces: replacedBy(entered, old, settings) };
    const saved = await orderCertificate(order, {
      ...world,
      authority: entered.authority,
      noteIssue: async () => states.write(afterIssue(await states.read(), nowUs())),
    });
    const certificate = await checked(saved, old, world);
    options.onIssued(certificate);
    await folder.writeCertificate(saved);
    await states.write(afterSuccess(await states.read(), nowUs()));
    await folder.removeOrder();
    return { outcome: 'renewed', certificate };
  } catch (error) {
    // The program is ending: that is nobody's failure, and the next start takes up the order.
    if (world.signal.aborted) throw error;
    throw await noteFailure(error, world);
  }
}

/** What comes before a new order. One that can be taken up needs none of it: it may be fetched already. */
async function prepare(world: AcmeWorld, old: OwnCertificate | null): Promise<void> {
  const { folder, states, settings, nowUs } = world;
  const order = await folder.readOrder();
  // Left by a program that was ended after it had saved its certificate.
  if (order !== null && order.key === old?.key) await folder.removeOrder();
  else if (order?.directoryUrl === settings.directoryUrl && order.host === settings.host) return;
  await world.openDoor();
  const { lastFailure, failures } = await states.read();
  const isWarned = failures > 0 && lastFailure?.isProof === true;
  // Near the end, what a rehearsal would spare no longer counts.
  if (isWarned && !isNearEnd(old, nowUs())) await rehearseAtStaging(world);
}

async function noteFailure(
  error: unknown,
  { states, settings, nowUs, random }: AcmeWorld,
): Promise<AppError> {
  const state = await states.read();
  const explained = explainFailure(error, settings);
  const retryAfterMs = error instanceof AcmeProblem ? error.retryAfterMs : null;
  const failed = { nowUs: nowUs(), retryAfterMs, random };
  const nextTryAtUs = nextTryTime(state.failures + 1, failed);
  const isProof = isProofProblem(explained.cause);
  const failure = { nowUs: failed.nowUs, words: explained, isProof, nextTryAtUs };
  await states.write(afterFailure(state, failure));
  return explained;
}

/** Only an authority that gives advice wants to know which certificate this one follows. */
function replacedBy(
  { directory }: EnteredAuthority,
  old: OwnCertificate | null,
  settings: AcmeSettings,
): string | null {
  if (directory.renewalInfo === undefined || old === null || !isFor(old, settings)) return null;
  return certificateIdOf(old.cert);
}

/** An order whose certificate is of no use is not fetched again. */
async function checked(
  saved: SavedCertificate,
  old: OwnCertificate | null,
  { folder, settings: { host }, nowUs }: AcmeWorld,
): Promise<OwnCertificate> {
  try {
    const certificate = ownCertificate(saved, 'what the authority has issued');
    const refuse = (detail: string) => new AcmeProblem('uselessCertificate', detail);
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
