/** Commands of a user on one managed subscription: pause, resume, cancel, delete. */
import type { Registration } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import { requireRunningSlot, sortAccount } from './plan.ts';
import { type AccountContext, gapOf, historyEntry, nowRunning } from './plan-context.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

type Context = Pick<AccountContext, 'client' | 'administration' | 'publicUrl' | 'nowUs' | 'limits'>;

/** A managed subscription found in the account. */
export interface ManagedSubscription {
  name: string;
  current: CatalogueSubscription;
  /** Undefined for one with our endpoint that was never registered. */
  registration: Registration | undefined;
  /** True when no other managed subscription has the name. */
  isOnlyOne: boolean;
  /** The whole account, including unmanaged subscriptions. */
  listed: readonly CatalogueSubscription[];
}

/**
 * Finds a managed subscription by name or Id. Rejects with `not_found`, and with `conflict` for an
 * unmanaged one and for a name that several have: these are found by Id only.
 */
export async function findManaged(
  nameOrId: string,
  context: Context,
): Promise<ManagedSubscription> {
  const { client, administration, publicUrl } = context;
  const [listed, registrations] = await Promise.all([
    client.list(),
    administration.registrations(),
  ]);
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations });
  const searched = nameOrId.toLowerCase();
  const all = [...managed].flatMap(([name, subscriptions]) =>
    subscriptions.map((current) => ({ name, current })),
  );
  const found = all.filter(
    ({ name, current }) => name === searched || current.id.toLowerCase() === searched,
  );
  const [first, second] = found;
  if (first === undefined) {
    const isUnmanaged = unmanaged.some(({ id }) => id.toLowerCase() === searched);
    throw isUnmanaged
      ? new AppError('conflict', `${nameOrId} is unmanaged: earshot has not registered it.`, {
          advice: `earshot never changes unmanaged subscriptions. Change it on the website of the catalogue.`,
        })
      : new AppError('not_found', `The account has no subscription ${nameOrId}.`, {
          advice: 'To list all: `earshot subscriptions list`.',
        });
  }
  if (second !== undefined) {
    throw new AppError(
      'conflict',
      `${found.length} subscriptions have the name ${nameOrId}: ${found.map(({ current }) => current.id).join(', ')}.`,
      {
        advice:
          'Use the subscription id, or run `earshot register`, which keeps one of these subscriptions.',
      },
    );
  }
  const registration = registrations.find(({ name }) => name === first.name);
  const isOnlyOne = all.filter(({ name }) => name === first.name).length === 1;
  return { ...first, registration, isOnlyOne, listed };
}

/** Pauses it, so that maintenance does not resume it. Records the gap before the request. */
export async function pauseByCommand(
  subscription: ManagedSubscription,
  context: Context,
): Promise<void> {
  const { name, current, registration } = subscription;
  const { client, administration, nowUs } = context;
  await administration.commit({
    openGap: gapOf({ name, ...current }, nowUs(), 'paused by command'),
  });
  // If the catalogue has already paused it, only the hold is new.
  if (current.status !== 'paused') await client.edit(current.id, { status: 'paused' });
  await administration.commit({
    ...(registration === undefined
      ? {}
      : { save: { ...registration, heldBy: 'command', pausedSeenAtUs: nowUs() } }),
    history: [entryOf(subscription, 'paused', context)],
  });
}

/** Resumes it, and maintenance too. Rejects with `conflict` when the maximum of subscriptions is running. */
export async function resumeByCommand(
  subscription: ManagedSubscription,
  context: Context,
): Promise<void> {
  const { name, current, registration, listed } = subscription;
  const { client, administration, nowUs, limits } = context;
  if (current.status !== 'running') requireRunningSlot(listed, limits);
  const missedFromUs = registration?.runningSeenAtUs ?? current.lastNotificationAtUs;
  if (current.status !== 'running' && missedFromUs !== null) {
    const openGap = gapOf({ name, ...current }, missedFromUs, 'it was paused');
    await administration.commit({ openGap });
  }
  const beganAtUs = nowUs();
  await client.edit(current.id, { status: 'running' });
  await administration.commit({
    ...(registration === undefined
      ? {}
      : {
          save: {
            ...registration,
            ...nowRunning(beganAtUs),
            status: 'running',
            heldBy: null,
            reported: null,
          },
        }),
    closeGaps: { subscription: name, toUs: nowUs() },
    history: [entryOf(subscription, 'resumed', context)],
  });
}

/** Removes the registration of a deleted subscription. False without one. */
export async function removeStaleRegistration(name: string, context: Context): Promise<boolean> {
  const { administration, nowUs } = context;
  const known = await administration.registrations();
  if (!known.some((one) => one.name === name)) return false;
  await administration.commit({
    removeRegistration: name,
    history: [
      historyEntry({ name, id: null }, 'forgotten', 'no longer in the account', by(context)),
    ],
    closeGaps: { subscription: name, toUs: nowUs() },
  });
  return true;
}

/** Cancels or deletes it permanently, and removes the registration with the last one of the name. */
export async function removeByCommand(
  subscription: ManagedSubscription,
  how: 'cancel' | 'delete',
  context: Context,
): Promise<void> {
  const { name, current, isOnlyOne } = subscription;
  const { client, administration, nowUs } = context;
  await client[how](current.id);
  await administration.commit({
    ...(isOnlyOne
      ? { removeRegistration: name, closeGaps: { subscription: name, toUs: nowUs() } }
      : {}),
    history: [entryOf(subscription, how === 'cancel' ? 'cancelled' : 'deleted', context)],
  });
}

function entryOf(
  { name, current: { id } }: ManagedSubscription,
  action: 'paused' | 'resumed' | 'cancelled' | 'deleted',
  context: Context,
) {
  return historyEntry({ name, id }, action, 'by command', by(context));
}

function by({ nowUs }: Context) {
  return { actor: 'subscriptions', nowUs } as const;
}
