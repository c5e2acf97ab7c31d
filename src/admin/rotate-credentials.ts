/** Changes the endpoint credentials in the catalogue, while the receiver accepts the old and the new ones. */
import { AppError } from '../domain/app-error.ts';
import { defaultSubscriptionName, endpointOf, requirePublicUrl } from '../domain/subscription.ts';
import { type AccountContext, digestCredentials, entryOf, isDigestOf } from './account-context.ts';
import { sortAccount } from './differences.ts';
import type { CatalogueSubscription, EndpointCredentials } from './subscription-client.ts';

export interface RotationContext
  extends Pick<
    AccountContext,
    'client' | 'administration' | 'probe' | 'publicUrl' | 'newSecret' | 'nowUs'
  > {
  /** Reads the accepted pairs of the credentials file. */
  readPairs: () => EndpointCredentials[];
  /** Replaces them; on disk when it resolves. */
  writePairs: (pairs: EndpointCredentials[]) => Promise<void>;
  newPair: () => EndpointCredentials;
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
 * Runs a rotation, or resumes an interrupted one, which left two pairs in the file. Rejects with
 * `unavailable` when the receiver or the catalogue does not apply the change. Both pairs then stay
 * accepted, and no delivery is refused.
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
  if (target === undefined)
    throw new AppError('internal', 'The new credentials for the rotation are missing.');
  const managed = await listManaged(context);
  if (resumed) report('Resuming an interrupted rotation.');
  else await writePairs(pairs);
  const names = [...managed.keys()];
  const endpoint = endpointOf(
    requirePublicUrl(context.publicUrl),
    names[0] ?? defaultSubscriptionName,
  );
  if (options.skipProbe) await context.pause(pollIntervalMs * 4);
  else await awaitAnswer(endpoint, target, null, context);
  report('The receiver accepts the old and the new credentials.');
  for (const [name, subscriptions] of managed) {
    await sendCredentials(name, subscriptions, target, context);
  }
  const running = names.filter((name) =>
    managed.get(name)?.some(({ status }) => status === 'running'),
  );
  await context.unlocked(() => awaitDeliveries(running, target, options, context));
  if (readPairs().at(-1)?.username !== target.username) throw changedMeanwhile();
  await writePairs([target]);
  const old = pairs[0];
  if (!options.skipProbe && old !== undefined) await awaitAnswer(endpoint, old, 401, context);
  report('The receiver accepts only the new credentials.');
}

/** Rejects with `conflict` if a rotation would lock out an unmanaged subscription. */
async function listManaged({
  client,
  administration,
  publicUrl,
}: RotationContext): Promise<Map<string, CatalogueSubscription[]>> {
  const [listed, registrations] = await Promise.all([
    client.list(),
    administration.registrations(),
  ]);
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations });
  const { origin } = new URL(requirePublicUrl(publicUrl));
  const lockedOut = unmanaged.filter(
    ({ endpoint }) => URL.parse(endpoint ?? '')?.origin === origin,
  );
  if (lockedOut.length === 0) return pushOf(managed);
  throw new AppError(
    'conflict',
    'After a rotation, the receiver would refuse pushes of these subscriptions, because their endpoint URLs have no name:',
    {
      details: [
        ...lockedOut.map(({ id, endpoint }) => `${id}: ${endpoint}`),
        'In the catalogue, change each endpoint to /notifications/<name>, or delete the subscription. Then run the command again.',
      ],
    },
  );
}

/** Pull subscriptions have no endpoint, and no credentials. */
function pushOf(managed: ReadonlyMap<string, CatalogueSubscription[]>) {
  const push = [...managed].map(([name, some]) => {
    return [name, some.filter(({ endpoint }) => endpoint !== null)] as const;
  });
  return new Map(push.filter(([, some]) => some.length > 0));
}

/** Polls until the receiver answers with 200 (`status` null), or with the given status. */
async function awaitAnswer(
  endpoint: string,
  pair: EndpointCredentials,
  status: number | null,
  { probe, pause }: RotationContext,
): Promise<void> {
  for (let polls = 1; ; polls += 1) {
    const answer = await probe(endpoint, pair);
    if (status === null ? answer.fault === null : answer.status === status) return;
    if (polls === reloadPollsMax || (answer.status === null && polls > 2)) {
      const reason = answer.fault?.message ?? 'The receiver still accepts the old credentials.';
      const message = `The receiver at ${endpoint} did not apply the change. ${reason}`;
      throw new AppError('unavailable', message, {
        details: [
          'Deliveries continue: the receiver still accepts the old credentials. Check that the receiver uses this data directory, then run `earshot credentials rotate` again to resume.',
          ...(answer.fault === null ? [] : [answer.fault.advice]),
        ],
      });
    }
    await pause(pollIntervalMs);
  }
}

async function sendCredentials(
  name: string,
  subscriptions: readonly CatalogueSubscription[],
  target: EndpointCredentials,
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
  target: EndpointCredentials,
  { waitMs }: RotationOptions,
  { administration, nowUs, pause, report }: RotationContext,
): Promise<void> {
  const beganAtUs = nowUs();
  report(
    `Waiting for deliveries with the new credentials (maximum ${Math.ceil(waitMs / 1000)} s).`,
  );
  const settleUs = Math.min(waitMs / 2, settleMaxMs) * 1000;
  const isNew = ({ username }: { username: string }) => username === target.username;
  let waiting: string[] = [...names];
  // Polls are counted, as the clock may be set during the wait.
  for (let waitedMs = 0; ; waitedMs += pollIntervalMs) {
    const marks = await administration.deliveryMarks();
    const [used, old] = [marks.filter(isNew), marks.filter((mark) => !isNew(mark))];
    waiting = names.filter((name) => !used.some(({ subscription }) => subscription === name));
    // Ignores times in the future, from a clock that was ahead.
    const oldTimes = old.map(({ lastAtUs }) => lastAtUs).filter((atUs) => atUs <= nowUs());
    const oldUseAtUs = Math.max(beganAtUs, ...oldTimes);
    const isSettled = nowUs() - oldUseAtUs >= settleUs;
    const isTimeout = waitedMs >= waitMs;
    if (isSettled && (waiting.length === 0 || isTimeout)) break;
    if (isTimeout) throw stillInUse();
    await pause(pollIntervalMs);
  }
  if (waiting.length === 0) return;
  report(`No delivery arrived for ${waiting.join(', ')} during the wait.`);
}

function changedMeanwhile(): AppError {
  return new AppError(
    'conflict',
    'Another command changed the credentials during the wait. The rotation stopped without further changes.',
    { advice: 'Run `earshot credentials rotate` again.' },
  );
}

function stillInUse(): AppError {
  return new AppError(
    'unavailable',
    'Deliveries still use the old credentials, so the receiver accepts the old and the new credentials.',
    {
      details: [
        'To resume, run `earshot credentials rotate` again later. To find the subscriptions that deliver to this receiver, run `earshot subscriptions list`.',
      ],
    },
  );
}
