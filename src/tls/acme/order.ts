/**
 * One order at an authority, from the account to the chain (RFC 8555, 7.1), and its rehearsal. Everything that an
 * interruption may not lose is on disk before the authority receives it.
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

/** Everything that a program needs to get certificates. */
export interface AcmeContext {
  settings: AcmeSettings;
  /** Where the same order can be rehearsed without counting; null where none is known. */
  stagingUrl: string | null;
  folder: AcmeFolder;
  states: StateKeeper;
  challenges: ChallengeFolder;
  /** Rejects with `configuration` when challenges could not be answered. */
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
  },
): AcmeContext {
  const { settings, dataDir, log, nowUs, random, signal } = options;
  const { stagingUrl = stagingOf(settings.directoryUrl), report = () => undefined } = options;
  const folder = openAcmeFolder(dataDir);
  const challenges = openChallengeFolder(dataDir);
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
  /** The id of the certificate that this one follows, where the authority wants to know. */
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

/** An order unfinished after this time is left to the next attempt, which resumes it. */
const finishTimeoutMs = 90_000;
/** Authorities check from several places, and some check again after a while. */
const proofTimeoutMs = 120_000;
/** An authority drops an order after some days; a new one is then the better start. */
const orderAgeUsMax = 24 * 3_600_000_000;

/**
 * Resumes the order that an interruption left behind, or places a new one; proves the name; has the certificate
 * issued; fetches it. The order stays on disk. Rejects with AcmeProblem.
 */
export async function orderCertificate(
  order: CertificateOrder,
  context: OrderContext,
): Promise<SavedCertificate> {
  const { authority, folder, challenges, report } = context;
  const { directoryUrl, host } = order;
  report(`asking ${new URL(directoryUrl).host} for a certificate for ${host}`);
  const saved = (await resume(order, context)) ?? (await place(order, context));
  let current = await authority.readOrder(saved.url);
  if (current.status === 'pending') {
    await proveName(current, order, context).catch(async (problem: unknown) => {
      // A name that was not proved ends its order.
      if (isChallengeProblem(problem)) await folder.removeOrder();
      throw problem;
    });
    current = await settled(current, ['pending'], context);
  } else {
    // What an interrupted proof may have left behind.
    await challenges.clear();
  }
  report('having it made');
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

/** On disk first: a full disk ends the attempt before anything is issued, or counted. */
async function countOnce(saved: SavedOrder, { folder, recordIssue }: OrderContext): Promise<void> {
  if (saved.isCounted) return;
  await folder.writeOrder({ ...saved, isCounted: true });
  await recordIssue();
}

/** The order on disk; null when there is none, or none that can be continued. */
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
      // The order is gone; what passes, such as no network, does not speak against it.
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
    // What it replaces must not prevent the order (RFC 9773, 5). Authorities refuse in many ways one that was
    // replaced already, that another account ordered, or that they do not know.
    if (replaces === null || !isAcmeProblem(problem) || isTransient(problem)) throw problem;
    return authority.createOrder(host, null);
  });
  const saved = { directoryUrl, host, url, key, placedAtUs: nowUs(), isCounted: false };
  await folder.writeOrder(saved);
  return saved;
}

/** Reads the order until it has left the states named. */
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

/** Proves that the name is ours. Rejects with the authority's reason as AcmeProblem; answers are removed in any case. */
async function proveName(
  placed: AcmeOrder,
  order: CertificateOrder,
  context: OrderContext,
): Promise<void> {
  const { authority, challenges, signal, report } = context;
  report(`proving by ${order.challenge} that ${order.host} is ours`);
  await context.openListener();
  // What an interrupted order left behind.
  await challenges.clear();
  try {
    for (const authorization of await authority.readAuthorizations(placed)) {
      if (authorization.status === 'pending') await answer(authorization, order, context);
    }
    const missing = () => 'the name is still unproved';
    await poll({ signal, timeoutMs: proofTimeoutMs, missing }, async () => {
      const authorizations = await authority.readAuthorizations(placed);
      for (const authorization of authorizations) refuseFailed(authorization, order);
      return authorizations.every(({ status }) => status === 'valid') || null;
    });
  } finally {
    await challenges.clear();
  }
}

/** Checks with growing pauses until there is a value. Rejects with AcmeProblem `timeout`. */
async function poll<Value>(
  options: { signal: AbortSignal; timeoutMs: number; missing: () => string },
  check: () => Promise<Value | null>,
): Promise<Value> {
  const { signal, timeoutMs, missing } = options;
  let pauseMs = 500;
  for (let waitedMs = 0; ; waitedMs += pauseMs) {
    const value = await check();
    if (value !== null) return value;
    if (waitedMs >= timeoutMs) throw new AcmeProblem('timeout', missing());
    await delay(pauseMs, undefined, { signal });
    pauseMs = Math.min(pauseMs * 2, 5_000);
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
    throw new AcmeProblem('noChallenge', `offered are ${types}`);
  }
  const text = await authority.keyAuthorization(challenge);
  if (kind === 'http-01') await challenges.put(challenge.token, text);
  else await challenges.putAlpn(await createAlpnKeyPair(host, text));
  // Any other was reported before an interruption, and is being checked.
  if (challenge.status === 'pending') await authority.answerChallenge(challenge);
}

function refuseFailed({ status, challenges }: AcmeAuthorization, order: CertificateOrder) {
  if (status === 'valid' || status === 'pending') return;
  const failed = challenges.find(({ type }) => type === order.challenge);
  if (failed?.error !== undefined) throw problemOf(failed.error);
  throw new AcmeProblem('unauthorized', `the authorization is ${status}`);
}

/** What a rehearsal has shown to work. */
export type TestResult = 'issued' | 'proved';

/** The folder of an order that is not worth keeping, and is not counted. */
const uncounted = {
  recordIssue: async () => undefined,
  folder: {
    readOrder: async () => null,
    writeOrder: async () => undefined,
    removeOrder: async () => undefined,
  },
};

/**
 * The whole order at the staging directory, where one is known; its certificate, which nobody trusts, is dropped.
 * Resolves with null where nothing can be shown there: none is known, or it is down, or refuses for reasons of its
 * own. Rejects with the explanation when the name cannot be proved.
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

/** At the staging directory; else at the authority itself, up to where a certificate would be issued. */
export async function testOrder(context: AcmeContext): Promise<TestResult> {
  await context.openListener();
  const staged = await testOrderAtStaging(context);
  if (staged !== null) return staged;
  const { settings } = context;
  const { authority } = await openAuthorityAccount(context);
  const placed = await authority.createOrder(settings.host, null);
  if (placed.status === 'pending') {
    await proveName(placed, settings, { ...context, ...uncounted, authority });
  }
  return 'proved';
}
