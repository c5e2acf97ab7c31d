/** Gives the catalogue new endpoint credentials, while the receiver accepts the old and the new. */
import type { DeliveryMark } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import { defaultSubscriptionName, endpointOf } from '../domain/subscription.ts';
import { sortAccount } from './plan.ts';
import {
  type AccountContext,
  digestCredentials,
  historyEntry,
  isDigestOf,
} from './plan-context.ts';
import type { CatalogueSubscription, EndpointCredentials } from './subscription-client.ts';

export interface RotationContext
  extends Pick<
    AccountContext,
    'client' | 'administration' | 'probe' | 'publicUrl' | 'newSecret' | 'nowUs'
  > {
  /** The accepted pairs as the file has them, and their replacement, on disk when it resolves. */
  readPairs: () => EndpointCredentials[];
  writePairs: (pairs: EndpointCredentials[]) => Promise<void>;
  newPair: () => EndpointCredentials;
  /** Gives back the lock on the account during a wait: others may look and change meanwhile. */
  unlocked: (wait: () => Promise<void>) => Promise<void>;
  /** Waits; rejects when the user asks to stop. */
  pause: (ms: number) => Promise<void>;
  report: (line: string) => void;
}

export interface RotationOptions {
  /** How long deliveries with the new pair are awaited. */
  waitMs: number;
  /** Does not look whether the receiver accepts the pairs. */
  skipProbe: boolean;
}

/** The old pair must have been out of use for so long, or for half of a wait that is shorter. */
const settleMaxMs = 30_000;
const lookEveryMs = 500;
/** Time for a running receiver to notice the changed file. */
const noticeTriesMax = 40;

/**
 * Goes on from wherever an earlier rotation was cut: two pairs in the file are one that is under way.
 * Rejects with `unavailable` when the receiver or the catalogue does not follow; then both pairs stay
 * accepted, and nothing is refused.
 */
export async function rotateCredentials(
  options: RotationOptions,
  context: RotationContext,
): Promise<void> {
  const { readPairs, writePairs, newPair, report } = context;
  const before = readPairs();
  const resumed = before.length > 1;
  const pairs = resumed ? before : [...before, newPair()];
  const target = pairs.at(-1);
  if (target === undefined) throw new AppError('internal', 'There is no pair to rotate to.');
  const owned = await listOwned(context);
  if (resumed) report('Going on with the rotation that was begun before.');
  else await writePairs(pairs);
  const names = [...owned.keys()];
  const endpoint = endpointOf(context.publicUrl, names[0] ?? defaultSubscriptionName);
  if (options.skipProbe) await context.pause(lookEveryMs * 4);
  else await awaitAnswer(endpoint, target, null, context);
  report('The receiver accepts the old and the new credentials.');
  for (const [name, subscriptions] of owned) await give(name, subscriptions, target, context);
  const running = names.filter((name) => owned.get(name)?.some((one) => one.status === 'running'));
  await context.unlocked(() => awaitDeliveries(running, target, options, context));
  if (readPairs().at(-1)?.username !== target.username) throw changedMeanwhile();
  await writePairs([target]);
  const old = pairs[0];
  if (!options.skipProbe && old !== undefined) await awaitAnswer(endpoint, old, 401, context);
  report('The receiver accepts the new credentials only.');
}

/** Rejects with `conflict` for subscriptions that a rotation would cut off. */
async function listOwned({
  client,
  administration,
  publicUrl,
}: RotationContext): Promise<Map<string, CatalogueSubscription[]>> {
  const [listed, registrations] = await Promise.all([
    client.list(),
    administration.registrations(),
  ]);
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations });
  const origin = new URL(publicUrl).origin;
  const cutOff = unmanaged.filter(({ endpoint }) => URL.parse(endpoint ?? '')?.origin === origin);
  if (cutOff.length === 0) return managed;
  throw new AppError(
    'conflict',
    'Some of the account deliver to this receiver under no name, so a rotation would cut them off.',
    {
      details: [
        ...cutOff.map(({ id, endpoint }) => `${id}: ${endpoint}`),
        'Give each the endpoint /notifications/<name>, or delete it, at the catalogue. Then rotate.',
      ],
    },
  );
}

/** Looks until the receiver answers 200 (`status` null), or with a status of its own. */
async function awaitAnswer(
  endpoint: string,
  pair: EndpointCredentials,
  status: number | null,
  { probe, pause }: RotationContext,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const answer = await probe(endpoint, pair);
    if (status === null ? answer.fault === null : answer.status === status) return;
    if (tries === noticeTriesMax || (answer.status === null && tries > 2)) {
      const why = answer.fault?.message ?? 'it still accepts the old credentials.';
      throw new AppError('unavailable', `The receiver at ${endpoint} does not follow: ${why}`, {
        details: [
          'Nothing is lost: it accepts the pairs that it knows. See that it runs with this data directory, then run `earshot credentials rotate` again; it goes on from here.',
          ...(answer.fault === null ? [] : [answer.fault.advice]),
        ],
      });
    }
    await pause(lookEveryMs);
  }
}

async function give(
  name: string,
  subscriptions: readonly CatalogueSubscription[],
  target: EndpointCredentials,
  context: RotationContext,
): Promise<void> {
  const { client, administration, nowUs, newSecret, report } = context;
  const registration = (await administration.registrations()).find((one) => one.name === name);
  // What is remembered says nothing of one that somebody else has made.
  const isKnown = subscriptions.every(({ id }) => id === registration?.subscriptionId);
  const digest = registration?.credentialsDigest ?? null;
  if (isKnown && isDigestOf(digest, target)) return;
  for (const { id } of subscriptions) await client.edit(id, { credentials: target });
  report(`The catalogue has the new credentials of "${name}".`);
  if (registration === undefined) return;
  const subject = { name, id: registration.subscriptionId };
  const by = { actor: 'credentials', nowUs } as const;
  await administration.commit({
    save: { ...registration, credentialsDigest: digestCredentials(target, newSecret()) },
    history: [historyEntry(subject, 'rotated', 'new endpoint credentials given', by)],
  });
}

/**
 * Resolves when every subscription that runs has delivered with the new pair, or the wait is over,
 * and the old one is out of use. Rejects when it is still in use then.
 */
async function awaitDeliveries(
  names: readonly string[],
  target: EndpointCredentials,
  { waitMs }: RotationOptions,
  { administration, nowUs, pause, report }: RotationContext,
): Promise<void> {
  const beganAtUs = nowUs();
  report(`Waiting for deliveries with the new ones, for at most ${Math.ceil(waitMs / 1000)} s.`);
  const settleUs = Math.min(waitMs / 2, settleMaxMs) * 1000;
  const isGiven = ({ username }: DeliveryMark) => username === target.username;
  let waiting: string[] = [...names];
  // Looks are counted, as the clock may be set meanwhile.
  for (let waitedMs = 0; ; waitedMs += lookEveryMs) {
    const marks = await administration.deliveryMarks();
    const [given, old] = [marks.filter(isGiven), marks.filter((mark) => !isGiven(mark))];
    waiting = names.filter((name) => !given.some(({ subscription }) => subscription === name));
    // Marks from a clock that was ahead are left out.
    const oldTimes = old.map(({ lastAtUs }) => lastAtUs).filter((atUs) => atUs <= nowUs());
    const oldUseAtUs = Math.max(beganAtUs, ...oldTimes);
    const isSettled = nowUs() - oldUseAtUs >= settleUs;
    const isOver = waitedMs >= waitMs;
    if (isSettled && (waiting.length === 0 || isOver)) break;
    if (isOver) throw stillInUse();
    await pause(lookEveryMs);
  }
  if (waiting.length === 0) return;
  report(`No delivery of ${waiting.join(', ')} came meanwhile, with the old credentials neither.`);
}

function changedMeanwhile(): AppError {
  return new AppError(
    'conflict',
    'The kept credentials were changed while deliveries were awaited, so they were left as they are.',
    { advice: 'Run `earshot credentials rotate` again.' },
  );
}

function stillInUse(): AppError {
  return new AppError(
    'unavailable',
    'Deliveries still come with the old credentials, so they stay accepted beside the new ones.',
    {
      details: [
        'Run `earshot credentials rotate` again later; it goes on from here. `earshot subscriptions list` shows what in the account delivers to this receiver.',
      ],
    },
  );
}
