/** Changes the endpoint credentials in the catalogue, while the receiver accepts the old and the new ones. */

import { AppError } from '../core/terms/app-error.ts';
import type { CredentialPair } from '../core/terms/ports.ts';
import {
  defaultSubscriptionName,
  endpointOf,
  requirePublicUrl,
} from '../core/terms/subscription.ts';
import { type AccountContext, digestCredentials, entryOf, isDigestOf } from './changes.ts';
import { sortAccount } from './differences.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

export interface RotationContext
  extends Pick<
    AccountContext,
    'client' | 'administration' | 'probe' | 'publicUrl' | 'newSecret' | 'nowUs'
  > {
  /** Reads the accepted pairs of the credentials file. */
  readPairs: () => CredentialPair[];
  /** Replaces them; on disk when it resolves. */
  writePairs: (pairs: CredentialPair[]) => Promise<void>;
  newPair: () => CredentialPair;
  /** Releases the lock on the account during a wait, so that other commands can run. */
  unlocked: (wait: () => Promise<void>) => Promise<void>;
  /** Waits; rejects when the user interrupts the command. */
  pause: (ms: number) => Promise<void>;
  report: (line: string) => void;
}

export interface RotationOptions {
  /** Maximum wait for deliveries with the new pair. */
  waitMs: number;
  /** Skips the check that the receiver accepts the pairs. */
  skipProbe: boolean;
}

/** Time without deliveries with the old pair before it is removed; half of a shorter wait. */
const settleMaxMs = 30_000;
const pollIntervalMs = 500;
/** Maximum polls until a running receiver has loaded the changed file. */
const reloadPollsMax = 40;

/**
 * Runs a rotation, or resumes an interrupted one, which left two pairs in the file. Rejects with `unavailable` when the
 * receiver or the catalogue does not apply the change. Both pairs then stay accepted, and no delivery is refused.
 */
export async function rotateCredentials(
  options: RotationOptions,
  context: RotationContext,
): Promise<void> {
  const { readPairs, writePairs, newPair, pause, publicUrl, report, unlocked } = context;
  const before = readPairs();
  const pairs = before.length > 1 ? before : [...before, newPair()];
  const target = pairs.at(-1) ?? newPair();
  const push = await listPush(context);
  if (before.length > 1) report('Resuming an interrupted rotation.');
  else await writePairs(pairs);
  const [first = defaultSubscriptionName] = push.keys();
  const endpoint = endpointOf(requirePublicUrl(publicUrl), first);
  if (options.skipProbe) await pause(pollIntervalMs * 4);
  else await awaitReload(endpoint, target, context);
  report('The receiver accepts the old and the new credentials.');
  for (const [name, some] of push) await sendCredentials(name, some, target, context);
  const isRunning = (one: CatalogueSubscription) => one.status === 'running';
  const running = [...push].filter(([, some]) => some.some(isRunning)).map(([name]) => name);
  await unlocked(() => awaitDeliveries(running, target, options, context));
  if (readPairs().at(-1)?.username !== target.username) throw changedMeanwhile();
  await writePairs([target]);
  report('The receiver accepts only the new credentials.');
}

/**
 * Returns the managed push subscriptions by name. Rejects with `conflict` if a rotation would lock out an unmanaged
 * subscription.
 */
async function listPush({
  client,
  administration,
  publicUrl,
}: RotationContext): Promise<Map<string, CatalogueSubscription[]>> {
  const listed = (await client.list()).filter(({ endpoint }) => endpoint !== null);
  const registrations = await administration.registrations();
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations });
  const { origin } = new URL(requirePublicUrl(publicUrl));
  const lockedOut = unmanaged.filter((one) => URL.parse(one.endpoint ?? '')?.origin === origin);
  if (lockedOut.length === 0) return managed;
  const message =
    'After a rotation, the receiver would refuse pushes of these subscriptions, because their endpoint URLs have no name:';
  const advice =
    'In the catalogue, change each endpoint to /notifications/<name>, or delete the subscription. Then run the command again.';
  const details = [...lockedOut.map(({ id, endpoint }) => `${id}: ${endpoint}`), advice];
  throw new AppError('conflict', message, { details });
}

/** Polls until the receiver accepts the new pair. */
async function awaitReload(
  endpoint: string,
  pair: CredentialPair,
  { probe, pause }: RotationContext,
): Promise<void> {
  for (let polls = 1; ; polls += 1) {
    const { fault, status } = await probe(endpoint, pair);
    if (fault === null) return;
    if (polls === reloadPollsMax || (status === null && polls > 2)) {
      const message = `The receiver at ${endpoint} did not apply the change: ${fault.message}`;
      const next =
        'Deliveries continue: the receiver still accepts the old credentials. Check that the receiver uses this data directory, then run `earshot credentials rotate` again to resume.';
      throw new AppError('unavailable', message, { details: [next, fault.advice] });
    }
    await pause(pollIntervalMs);
  }
}

async function sendCredentials(
  name: string,
  subscriptions: readonly CatalogueSubscription[],
  target: CredentialPair,
  context: RotationContext,
): Promise<void> {
  const { client, administration, nowUs, newSecret, report } = context;
  const registration = (await administration.registrations()).find((one) => one.name === name);
  // The stored digest is not valid for a subscription that a person created.
  const isKnown = subscriptions.every(({ id }) => id === registration?.subscriptionId);
  const digest = registration?.credentialsDigest ?? null;
  if (isKnown && isDigestOf(digest, target)) return;
  for (const { id } of subscriptions) await client.edit(id, { credentials: target });
  report(`Changed the credentials of "${name}" in the catalogue.`);
  if (registration === undefined) return;
  const subject = { name, id: registration.subscriptionId };
  const by = { actor: 'credentials', atUs: nowUs() } as const;
  await administration.commit({
    save: { ...registration, credentialsDigest: digestCredentials(target, newSecret()) },
    history: [entryOf(subject, 'rotated', 'new endpoint credentials', by)],
  });
}

/**
 * Resolves when the old pair is unused, and every running subscription has delivered with the new one
 * or the maximum wait has passed. Rejects when the old pair is still used then.
 */
async function awaitDeliveries(
  names: readonly string[],
  target: CredentialPair,
  { waitMs }: RotationOptions,
  { administration, nowUs, pause, report }: RotationContext,
): Promise<void> {
  const beganAtUs = nowUs();
  report(
    `Waiting for deliveries with the new credentials (maximum ${Math.ceil(waitMs / 1000)} s).`,
  );
  const settleUs = Math.min(waitMs / 2, settleMaxMs) * 1000;
  const isNew = ({ username }: { username: string }) => username === target.username;
  // Polls are counted, as the clock may be set during the wait.
  for (let waitedMs = 0; ; waitedMs += pollIntervalMs) {
    const marks = await administration.deliveryMarks();
    const [used, old] = [marks.filter(isNew), marks.filter((mark) => !isNew(mark))];
    const waiting = names.filter((name) => !used.some(({ subscription }) => subscription === name));
    // Ignores times in the future, from a clock that was ahead.
    const oldTimes = old.map(({ lastAtUs }) => lastAtUs).filter((atUs) => atUs <= nowUs());
    const oldUseAtUs = Math.max(beganAtUs, ...oldTimes);
    const isSettled = nowUs() - oldUseAtUs >= settleUs;
    const isTimeout = waitedMs >= waitMs;
    if (isSettled && (waiting.length === 0 || isTimeout)) {
      if (waiting.length > 0)
        report(`No delivery arrived for ${waiting.join(', ')} during the wait.`);
      return;
    }
    if (isTimeout) throw stillInUse();
    await pause(pollIntervalMs);
  }
}

function changedMeanwhile(): AppError {
  const message =
    'Another command changed the credentials during the wait. The rotation stopped without further changes.';
  return new AppError('conflict', message, { advice: 'Run `earshot credentials rotate` again.' });
}

function stillInUse(): AppError {
  const message =
    'Deliveries still use the old credentials, so the receiver accepts the old and the new credentials.';
  const advice =
    'To resume, run `earshot credentials rotate` again later. To find the subscriptions that deliver to this receiver, run `earshot subscriptions list`.';
  return new AppError('unavailable', message, { advice });
}
