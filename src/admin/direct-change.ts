/** Commands of a user on one managed subscription: pause, resume, cancel, delete. */
import type { Registration } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import { type AccountContext, entryOf, listAccount, observed } from './account-context.ts';
import { sortAccount } from './differences.ts';
import { resume } from './maintain.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

type Context = Pick<AccountContext, 'client' | 'administration' | 'publicUrl' | 'nowUs' | 'limits'>;

/** A managed subscription found in the account. */
export interface ManagedSubscription {
  name: string;
  current: CatalogueSubscription;
  /** Undefined for one with our endpoint that was never registered. */
  registration: Registration | undefined;
  /** The managed subscriptions of the name. */
  candidates: readonly CatalogueSubscription[];
  /** Time before which the account was listed. */
  askedAtUs: number;
}

/**
 * Finds a managed subscription by name or id. Rejects with `not_found`, and with `conflict` for an unmanaged one and for
 * a name that several have: these are found by id only.
 */
export async function findManaged(
  nameOrId: string,
  context: Context,
): Promise<ManagedSubscription> {
  const { administration, publicUrl } = context;
  const { listed, askedAtUs } = await listAccount(context);
  const registrations = await administration.registrations();
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations });
  const searched = nameOrId.toLowerCase();
  const isSearched = ({ id }: CatalogueSubscription) => id.toLowerCase() === searched;
  const found = [...managed].flatMap(([name, candidates]) =>
    candidates
      .filter((one) => name === searched || isSearched(one))
      .map((current) => ({ name, candidates, current })),
  );
  const [first, second] = found;
  if (first === undefined && unmanaged.some(isSearched)) {
    throw new AppError('conflict', `${nameOrId} is unmanaged: earshot has not registered it.`, {
      advice:
        'earshot never changes unmanaged subscriptions. Change it on the website of the catalogue.',
    });
  }
  if (first === undefined) {
    const names = [...managed.keys()].join(', ') || 'none';
    throw new AppError(
      'not_found',
      `The account has no subscription ${nameOrId}. Managed: ${names}.`,
      {
        advice: 'To list all: `earshot subscriptions list`.',
      },
    );
  }
  if (second !== undefined) {
    const ids = found.map(({ current }) => current.id).join(', ');
    throw new AppError(
      'conflict',
      `${found.length} subscriptions have the name ${nameOrId}: ${ids}.`,
      {
        advice:
          'Use the subscription id, or run `earshot register`, which keeps one of these subscriptions.',
      },
    );
  }
  const registration = registrations.find(({ name }) => name === first.name);
  return { ...first, registration, askedAtUs };
}

/** Records what was found: a gap starts when it was last seen running. */
async function recordSeen(
  { registration, candidates, askedAtUs }: ManagedSubscription,
  context: Context,
): Promise<void> {
  if (registration === undefined) return;
  await context.administration.commit(observed(registration, candidates, askedAtUs, context));
}

/** Pauses it, so that maintenance does not resume it. Its gap starts before the request. */
export async function pauseByCommand(
  subscription: ManagedSubscription,
  context: Context,
): Promise<void> {
  const { name, current } = subscription;
  const { client, administration, nowUs } = context;
  await recordSeen(subscription, context);
  // If the catalogue has already paused it, only the hold is new.
  if (current.status !== 'paused') await client.edit(current.id, { status: 'paused' });
  const history = [entryOf({ name, id: current.id }, 'paused', 'by command', by(context))];
  const seen = (await administration.registrations()).find((one) => one.name === name);
  if (seen === undefined) return administration.commit({ history });
  const paused = { ...seen, heldBy: 'command', pausedSeenAtUs: nowUs() } as const;
  const stopped = [{ ...current, status: 'paused' }];
  await administration.commit({ ...observed(paused, stopped, nowUs(), context), history });
}

/** Resumes it, and maintenance too. Rejects with `conflict` when the maximum of subscriptions is running. */
export async function resumeByCommand(
  subscription: ManagedSubscription,
  context: Context,
): Promise<void> {
  const { name, current } = subscription;
  await recordSeen(subscription, context);
  await resume(name, current, { actor: 'subscriptions', reason: 'by command' }, context);
}

/** Removes the registration of a deleted subscription. False without one. */
export async function removeStaleRegistration(name: string, context: Context): Promise<boolean> {
  const { administration, nowUs } = context;
  const known = await administration.registrations();
  if (!known.some((one) => one.name === name)) return false;
  await administration.commit({
    removeRegistration: name,
    history: [entryOf({ name, id: null }, 'forgotten', 'no longer in the account', by(context))],
    closeGaps: { subscription: name, toUs: nowUs() },
  });
  return true;
}

/** Cancels or deletes it permanently, and removes the registration with the last one of the name. */
export async function removeByCommand(
  { name, current: { id }, candidates }: ManagedSubscription,
  how: 'cancel' | 'delete',
  context: Context,
): Promise<void> {
  const { client, administration, nowUs } = context;
  await client[how](id);
  const isLast = candidates.length === 1;
  const closeGaps = { subscription: name, toUs: nowUs() };
  const action = how === 'cancel' ? 'cancelled' : 'deleted';
  await administration.commit({
    ...(isLast ? { removeRegistration: name, closeGaps } : {}),
    history: [entryOf({ name, id }, action, 'by command', by(context))],
  });
}

const by = ({ nowUs }: Context) => ({ actor: 'subscriptions', atUs: nowUs() }) as const;
