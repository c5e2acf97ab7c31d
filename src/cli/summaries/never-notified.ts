/** Tells a slip in the name of a subscription from a time in which nothing came for it. */
import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import type { Store } from '../../store/store.ts';
import type { Io } from '../io.ts';

/** A sentence, with the names there are; null where something came for the name once, or none is given. */
export async function neverNotified(
  subscription: string | undefined,
  { find, administration }: Pick<Store, 'find' | 'administration'>,
  { workingDir }: Pick<Io, 'workingDir'>,
): Promise<string | null> {
  if (subscription === undefined) return null;
  for await (const _ of find({ subscription, limit: 1 })) return null;
  const registered = await administration.registrations();
  const inFile = (await loadSubscriptionsFile(workingDir)) ?? [];
  const names = [...new Set([...registered, ...inFile].map(({ name }) => name))].toSorted();
  const known = names.length === 0 ? 'None is registered' : `There are: ${names.join(', ')}`;
  return `Nothing ever came for a subscription "${subscription}". ${known}.`;
}
