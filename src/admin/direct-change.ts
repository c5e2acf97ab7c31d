/** What a user does to one subscription of ours by command: pause, resume, cancel, delete. */
import type { Registration } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import { requireRunningSlot, sortAccount } from './plan.ts';
import { type AccountContext, gapOf, historyEntry, nowRunning } from './plan-context.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

type Context = Pick<AccountContext, 'client' | 'administration' | 'publicUrl' | 'nowUs' | 'limits'>;

/** One of ours, found in the account. */
export interface ManagedSubscription {
  name: string;
  current: CatalogueSubscription;
  /** Undefined for one that stands under our endpoint, but was never registered. */
  registration: Registration | undefined;
  /** No other one of ours carries the name. */
  isOnlyOne: boolean;
  /** The whole account, of whomever. */
  listed: readonly CatalogueSubscription[];
}

/**
 * Finds one of ours by name or Id. Rejects with `not_found`, `conflict` for one that is not ours, and
 * for a name that several carry: then only the Id says which.
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
  const wanted = nameOrId.toLowerCase();
  const all = [...managed].flatMap(([name, owned]) => owned.map((current) => ({ name, current })));
  const found = all.filter(
    ({ name, current }) => name === wanted || current.id.toLowerCase() === wanted,
  );
  const [first, second] = found;
  if (first === undefined) {
    const foreign = unmanaged.some(({ id }) => id.toLowerCase() === wanted);
    throw foreign
      ? new AppError('conflict', `${nameOrId} is not ours: its endpoint is another one.`, {
          advice: `What others made is never touched; use the catalogue's own pages for it.`,
        })
      : new AppError('not_found', `There is no subscription ${nameOrId} in the account.`, {
          advice: '`earshot subscriptions list` shows all.',
        });
  }
  if (second !== undefined) {
    throw new AppError(
      'conflict',
      `${found.length} subscriptions carry the name ${nameOrId}: ${found.map(({ current }) => current.id).join(', ')}.`,
      { advice: 'Name one by its id, or let `earshot register` keep one.' },
    );
  }
  const registration = registrations.find(({ name }) => name === first.name);
  const isOnlyOne = all.filter(({ name }) => name === first.name).length === 1;
  return { ...first, registration, isOnlyOne, listed };
}

/** Pauses it and keeps maintenance from resuming it. The gap is remembered before anything stops. */
export async function pauseByCommand(ours: ManagedSubscription, context: Context): Promise<void> {
  const { name, current, registration } = ours;
  const { client, administration, nowUs } = context;
  await administration.commit({
    openGap: gapOf({ name, ...current }, nowUs(), 'paused by command'),
  });
  // The service may have paused it already: then only the hold is new.
  if (current.status !== 'paused') await client.edit(current.id, { status: 'paused' });
  await administration.commit({
    ...(registration === undefined
      ? {}
      : { save: { ...registration, heldBy: 'command', pausedSeenAtUs: nowUs() } }),
    history: [entryOf(ours, 'paused', context)],
  });
}

/** Resumes it, whatever was registered, and puts it back under maintenance. Rejects with `conflict` when too many run. */
export async function resumeByCommand(ours: ManagedSubscription, context: Context): Promise<void> {
  const { name, current, registration, listed } = ours;
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
    history: [entryOf(ours, 'resumed', context)],
  });
}

/** Forgets a name that is gone from the account, as a deletion that was cut short leaves it. False if it is not known. */
export async function removeStaleRegistration(name: string, context: Context): Promise<boolean> {
  const { administration, nowUs } = context;
  const known = await administration.registrations();
  if (!known.some((one) => one.name === name)) return false;
  await administration.commit({
    removeRegistration: name,
    history: [
      historyEntry({ name, id: null }, 'forgotten', 'it was gone from the account', by(context)),
    ],
    closeGaps: { subscription: name, toUs: nowUs() },
  });
  return true;
}

/** Takes it out of the account for good; with the last of a name, maintenance forgets the name. */
export async function removeByCommand(
  ours: ManagedSubscription,
  how: 'cancel' | 'delete',
  context: Context,
): Promise<void> {
  const { name, current, isOnlyOne } = ours;
  const { client, administration, nowUs } = context;
  await client[how](current.id);
  await administration.commit({
    ...(isOnlyOne
      ? { removeRegistration: name, closeGaps: { subscription: name, toUs: nowUs() } }
      : {}),
    history: [entryOf(ours, how === 'cancel' ? 'cancelled' : 'deleted', context)],
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
