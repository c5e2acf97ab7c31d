/**
 * Orders a certificate, from the account to the chain (RFC 8555, 7.1), and tests orders. Everything that an
 * interruption must not lose is saved before the authority receives it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../domain/ports.ts';
import {
  type AcmeAuthorization,
  type AcmeOrder,
  type AcmeSettings,
  type Authority,
  createAlpnKeyPair,
  createKey,
  openAuthorityAccount,
  problemOf,
  stagingOf,
} from './authority.ts';
import { type ChallengeFolder, openChallengeFolder } from './challenge.ts';
import {
  AcmeProblem,
  explainFailure,
  isAcmeProblem,
  isChallengeProblem,
  isTransient,
} from './problem.ts';
import {
  type AcmeFolder,
  createStateKeeper,
  openAcmeFolder,
  type SavedCertificate,
  type SavedOrder,
  type StateKeeper,
} from './state.ts';

/** Dependencies of orders and renewals. */
export interface AcmeContext {
  settings: AcmeSettings;
  /** Staging directory, where orders do not count; null if none is known. */
  stagingUrl: string | null;
  folder: AcmeFolder;
  states: StateKeeper;
  challenges: ChallengeFolder;
  /** Rejects with `configuration` when challenges cannot be answered. */
  openListener: () => Promise<void>;
  nowUs: () => number;
  random: () => number;
  /** Reports each step of an order. */
  report: (step: string) => void;
  signal: AbortSignal;
}

type Given = Pick<AcmeContext, 'settings' | 'nowUs' | 'random' | 'signal'>;

export function openAcmeContext(
  options: Given & {
    dataDir: string;
    /** For tests. */
    stagingUrl?: string | null;
    openListener: (challenges: ChallengeFolder) => Promise<void>;
    log: Pick<Logger, 'error'>;
    report?: (step: string) => void;
    /** See `openChallengeFolder`. */
    published?: () => Promise<void>;
  },
): AcmeContext {
  const { settings, dataDir, log, nowUs, random, signal } = options;
  const { stagingUrl = stagingOf(settings.directoryUrl), report = () => undefined } = options;
  const folder = openAcmeFolder(dataDir);
  const challenges = openChallengeFolder(dataDir, options.published);
  const states = createStateKeeper(folder, settings, log);
  const openListener = () => options.openListener(challenges);
  return {
    settings,
    stagingUrl,
    folder,
    states,
    challenges,
    openListener,
    nowUs,
    random,
    report,
    signal,
  };
}

interface CertificateOrder extends Pick<AcmeSettings, 'directoryUrl' | 'host' | 'challenge'> {
  /** Id of the replaced certificate, if the authority supports it. */
  replaces?: string | null;
}

type OrderContext = Pick<
  AcmeContext,
  'challenges' | 'openListener' | 'nowUs' | 'report' | 'signal'
> & {
  authority: Authority;
  folder: Pick<AcmeFolder, 'readOrder' | 'writeOrder' | 'removeOrder'>;
  /** Called once for each order, before its certificate is issued. */
  recordIssue: () => Promise<void>;
};

/** After this time, an unfinished order is left to the next attempt. */
const finishTimeoutMs = 90_000;
/** Authorities check from several locations, and some repeat the check later. */
const validationTimeoutMs = 120_000;
/** Maximum age of a resumed order: authorities delete orders after some days. */
const orderAgeUsMax = 24 * 3_600_000_000;

/**
 * Resumes an interrupted order or places a new one, validates the name, finalizes the order and downloads the
 * certificate. The order stays on disk. Rejects with AcmeProblem.
 */
export async function orderCertificate(
  order: CertificateOrder,
  context: OrderContext,
): Promise<SavedCertificate> {
  const { authority, folder, challenges, report } = context;
  const { directoryUrl, host } = order;
  report(`ordering a certificate for ${host} from ${new URL(directoryUrl).host}`);
  const saved = (await resume(order, context)) ?? (await place(order, context));
  let current = await authority.readOrder(saved.url);
  if (current.status === 'pending') {
    await validateName(current, order, context).catch(async (problem: unknown) => {
      // A failed validation ends the order.
      if (isChallengeProblem(problem)) await folder.removeOrder();
      throw problem;
    });
    current = await settled(current, ['pending'], context);
  } else {
    // Removes responses of an interrupted validation.
    await challenges.clear();
  }
  report('finalizing the order');
  if (current.status === 'ready') {
    await countOnce(saved, context);
    current = await authority.finalize(current, saved);
  }
  current = await settled(current, ['pending', 'ready', 'processing'], context);
  if (current.status !== 'valid') {
    await folder.removeOrder();
    throw problemOf(current.error);
  }
  const chain = await authority.downloadChain(current);
  return { directoryUrl, host, key: saved.key, chain };
}

/** Counts the certificate once. Saves first: a full disk fails the attempt before it is issued and counted. */
async function countOnce(saved: SavedOrder, { folder, recordIssue }: OrderContext): Promise<void> {
  if (saved.isCounted) return;
  await folder.writeOrder({ ...saved, isCounted: true });
  await recordIssue();
}

/** Returns the saved order; null without one that can be resumed. */
async function resume(
  order: CertificateOrder,
  { folder, authority, nowUs }: OrderContext,
): Promise<SavedOrder | null> {
  const saved = await folder.readOrder();
  if (saved === null) return null;
  const isOurs = saved.directoryUrl === order.directoryUrl && saved.host === order.host;
  const ageUs = nowUs() - saved.placedAtUs;
  if (isOurs && ageUs >= 0 && ageUs < orderAgeUsMax) {
    const known = await authority.readOrder(saved.url).catch((problem: unknown) => {
      // The order no longer exists. A transient problem, such as no network, does not end it.
      if (isAcmeProblem(problem) && !isTransient(problem)) return null;
      throw problem;
    });
    if (known !== null && known.status !== 'invalid') return saved;
  }
  await folder.removeOrder();
  return null;
}

async function place(order: CertificateOrder, context: OrderContext): Promise<SavedOrder> {
  const { authority, folder, nowUs } = context;
  const { directoryUrl, host, replaces = null } = order;
  const key = await createKey();
  const { url } = await authority.createOrder(host, replaces).catch((problem: unknown) => {
    // `replaces` must not prevent the order (RFC 9773, 5). Authorities refuse, with various errors, certificates that
    // are already replaced, of another account, or unknown.
    if (replaces === null || !isAcmeProblem(problem) || isTransient(problem)) throw problem;
    return authority.createOrder(host, null);
  });
  const saved = { directoryUrl, host, url, key, placedAtUs: nowUs(), isCounted: false };
  await folder.writeOrder(saved);
  return saved;
}

/** Polls the order until it has left the given states. */
function settled(
  order: AcmeOrder,
  states: readonly AcmeOrder['status'][],
  { authority, signal }: OrderContext,
): Promise<AcmeOrder> {
  let current: AcmeOrder | undefined;
  return poll(
    { signal, timeoutMs: finishTimeoutMs, missing: () => `still ${current?.status}` },
    async () => {
      current = current === undefined ? order : await authority.readOrder(order.url);
      return states.includes(current.status) ? null : current;
    },
  );
}

/** Completes the challenge for the name. Rejects with AcmeProblem. Always removes the responses. */
async function validateName(
  placed: AcmeOrder,
  order: CertificateOrder,
  context: OrderContext,
): Promise<void> {
  const { authority, challenges, signal, report } = context;
  report(`validating ${order.host} with ${order.challenge}`);
  await context.openListener();
  // Removes responses of an interrupted order.
  await challenges.clear();
  try {
    for (const authorization of await authority.readAuthorizations(placed)) {
      if (authorization.status === 'pending') await answer(authorization, order, context);
    }
    const missing = () => 'the name is not validated yet';
    await poll({ signal, timeoutMs: validationTimeoutMs, missing }, async () => {
      const authorizations = await authority.readAuthorizations(placed);
      for (const authorization of authorizations) refuseFailed(authorization, order);
      return authorizations.every(({ status }) => status === 'valid') || null;
    });
  } finally {
    await challenges.clear();
  }
}

/** Checks with growing delays until there is a value. Rejects with AcmeProblem `timeout`. */
async function poll<Value>(
  options: { signal: AbortSignal; timeoutMs: number; missing: () => string },
  check: () => Promise<Value | null>,
): Promise<Value> {
  const { signal, timeoutMs, missing } = options;
  let delayMs = 500;
  for (let waitedMs = 0; ; waitedMs += delayMs) {
    const value = await check();
    if (value !== null) return value;
    if (waitedMs >= timeoutMs) throw new AcmeProblem('timeout', missing());
    await delay(delayMs, undefined, { signal });
    delayMs = Math.min(delayMs * 2, 5_000);
  }
}

async function answer(
  { challenges: offered }: AcmeAuthorization,
  { host, challenge: kind }: CertificateOrder,
  { authority, challenges }: OrderContext,
): Promise<void> {
  const challenge = offered.find(({ type }) => type === kind);
  if (challenge?.token === undefined) {
    const types = offered.map(({ type }) => type).join(', ');
    throw new AcmeProblem('noChallenge', `offered: ${types}`);
  }
  const text = await authority.keyAuthorization(challenge);
  if (kind === 'http-01') await challenges.put(challenge.token, text);
  else await challenges.putAlpn(await createAlpnKeyPair(host, text));
  // In another state it was submitted before an interruption, and is being checked.
  if (challenge.status === 'pending') await authority.answerChallenge(challenge);
}

function refuseFailed({ status, challenges }: AcmeAuthorization, order: CertificateOrder) {
  if (status === 'valid' || status === 'pending') return;
  const failed = challenges.find(({ type }) => type === order.challenge);
  if (failed?.error !== undefined) throw problemOf(failed.error);
  throw new AcmeProblem('unauthorized', `the authorization is ${status}`);
}

/** Result of a test: a complete order, or only the validation of the name. */
export type TestResult = 'issued' | 'proved';

/** Context of a test order, which is neither saved nor counted. */
const uncounted = {
  recordIssue: async () => undefined,
  folder: {
    readOrder: async () => null,
    writeOrder: async () => undefined,
    removeOrder: async () => undefined,
  },
};

/**
 * Runs a complete order at the staging directory, and discards its untrusted certificate. Resolves with null without
 * a result: no staging directory is known, or it is down or refuses the order for its own reasons. Rejects with the
 * explanation when the validation of the name fails.
 */
export async function testOrderAtStaging(context: AcmeContext): Promise<'issued' | null> {
  const { stagingUrl } = context;
  if (stagingUrl === null) return null;
  const settings = { ...context.settings, directoryUrl: stagingUrl, eab: undefined };
  try {
    const { authority } = await openAuthorityAccount({ ...context, settings });
    await orderCertificate(settings, { ...context, ...uncounted, authority });
    return 'issued';
  } catch (problem) {
    if (isChallengeProblem(problem)) throw explainFailure(problem, settings);
    if (problem instanceof AcmeProblem) return null;
    throw problem;
  }
}

/** Tests an order at the staging directory; else only the validation of the name at the authority. */
export async function testOrder(context: AcmeContext): Promise<TestResult> {
  await context.openListener();
  const staged = await testOrderAtStaging(context);
  if (staged !== null) return staged;
  const { settings } = context;
  const { authority } = await openAuthorityAccount(context);
  const placed = await authority.createOrder(settings.host, null);
  if (placed.status === 'pending') {
    await validateName(placed, settings, { ...context, ...uncounted, authority });
  }
  return 'proved';
}
