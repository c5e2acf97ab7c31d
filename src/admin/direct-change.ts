/** Changes of one managed subscription: its status, by a command or by maintenance, and its deletion by a command. */

import { AppError } from '../core/terms/app-error.ts';
import type { RequestedStatus } from '../core/terms/subscription.ts';
import type { HistoryActor } from './account.ts';
import { type AccountContext, entryOf, listAccount, observed } from './account-context.ts';
import { countsOf, noRunningSlot, sortAccount } from './differences.ts';
import { drain } from './requests.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

type Context = Pick<
  AccountContext,
  'client' | 'administration' | 'publicUrl' | 'nowUs' | 'limits' | 'drain'
>;

/** A managed subscription found in the account. */
export interface ManagedSubscription {
  name: string;
  current: CatalogueSubscription;
  /** True if the account has no other managed subscription of the name. */
  isOnly: boolean;
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
  const { listed } = await listAccount(context);
  const registrations = await administration.registrations();
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations });
  const key = nameOrId.toLowerCase();
  const isSearched = ({ id }: CatalogueSubscription) => id.toLowerCase() === key;
  const found = [...managed].flatMap(([name, all]) =>
    all
      .filter((one) => name === key || isSearched(one))
      .map((current) => ({ name, current, isOnly: all.length === 1 })),
  );
  const [first] = found;
  if (first !== undefined && found.length === 1) return first;
  if (first !== undefined) {
    const ids = found.map(({ current }) => current.id).join(', ');
    throw new AppError('conflict', `Several subscriptions have the name ${nameOrId}: ${ids}.`, {
      advice: 'Use the id, or run `earshot register`, which keeps one of them.',
    });
  }
  if (unmanaged.some(isSearched)) {
    throw new AppError('conflict', `${nameOrId} is unmanaged: earshot never changes it.`, {
      advice: 'Change it on the website of the catalogue.',
    });
  }
  const names = [...managed.keys()].join(', ') || 'none';
  const message = `The account has no subscription ${nameOrId}. Managed: ${names}.`;
  throw new AppError('not_found', message, {
    advice: 'To list all: `earshot subscriptions list`.',
  });
}

/**
 * Changes the status of a subscription, and its desired status too, so that maintenance keeps it. Rejects with `conflict`
 * if the maximum of subscriptions is running.
 */
export async function setStatus(
  { name, current }: Pick<ManagedSubscription, 'name' | 'current'>,
  status: RequestedStatus,
  by: { actor: HistoryActor; reason: string },
  context: Context,
): Promise<void> {
  const { client, administration, publicUrl, limits, nowUs } = context;
  const { listed, askedAtUs } = await listAccount(context);
  const registrations = await administration.registrations();
  const { running } = countsOf(listed);
  const starts = status === 'running' && current.status !== 'running';
  if (starts && running >= limits.runningMax) throw noRunningSlot(running, limits);
  const known = registrations.find((one) => one.name === name);
  const { managed } = sortAccount(listed, { publicUrl, registrations });
  const seen = known && observed(known, managed.get(name) ?? [], askedAtUs, context);
  // A gap before this change is recorded even if the program is interrupted after the request.
  if (seen !== undefined) await administration.commit(seen);
  const isSame = known?.status === status && current.status === status;
  if (isSame && !known.changedByPerson) return;
  if (status === 'paused') await drain(name, current, context);
  const beganAtUs = nowUs();
  if (current.status !== status) await client.edit(current.id, { status });
  const action = status === 'running' ? 'resumed' : 'paused';
  const history = [
    entryOf({ name, id: current.id }, action, `now ${status}`, { ...by, atUs: nowUs() }),
  ];
  if (seen === undefined) return administration.commit({ history });
  const activityAtUs = starts ? beganAtUs : seen.save.activityAtUs;
  const save = { ...seen.save, status, activityAtUs, changedByPerson: false, reported: [] };
  const change = observed(save, [{ ...current, status }], beganAtUs, context);
  await administration.commit({ ...change, history });
}

/** Removes the registration of a subscription that no longer exists. False without one. */
export async function removeStaleRegistration(name: string, context: Context): Promise<boolean> {
  const { administration, nowUs } = context;
  const known = await administration.registrations();
  if (!known.some((one) => one.name === name)) return false;
  const by = { actor: 'subscriptions', atUs: nowUs() } as const;
  await administration.commit({
    removeRegistration: name,
    history: [entryOf({ name, id: null }, 'removed', 'no longer in the account', by)],
    closeGaps: { subscription: name, toUs: nowUs() },
  });
  return true;
}

/** Deletes a subscription, after the rest of its queue is stored, and the registration with the last one of the name. */
export async function deleteByCommand(
  { name, current, isOnly }: ManagedSubscription,
  context: Context,
): Promise<void> {
  const { client, administration, nowUs } = context;
  await drain(name, current, context);
  await client.delete(current.id);
  const closeGaps = { subscription: name, toUs: nowUs() };
  const by = { actor: 'subscriptions', atUs: nowUs() } as const;
  await administration.commit({
    ...(isOnly ? { removeRegistration: name, closeGaps } : {}),
    history: [entryOf({ name, id: current.id }, 'deleted', 'by command', by)],
  });
}
