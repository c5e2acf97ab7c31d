/** Refuses names that nobody knows, with the nearest ones. */

import type { StoreReader } from '../../store/store.ts';
import { AppError } from '../terms/app-error.ts';
import { likelyNames, printable } from '../terms/text.ts';

/** Returns a `usage` error that names the nearest known names, or all. */
export function unknownName(what: string, name: string, known: Iterable<string>): AppError {
  const all = [...new Set(known)].toSorted();
  const near = likelyNames(name, all);
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`;
  const list = all.length === 0 ? 'None is known yet.' : `Known: ${all.join(', ')}.`;
  return new AppError('usage', `There is no ${what} ${printable(name)}.${hint}`, { advice: list });
}

type Names = {
  administration: Pick<StoreReader['administration'], 'registrations' | 'deliveryMarks'>;
  completeness: Pick<StoreReader['completeness'], 'definitions'>;
};

/** Returns the names of subscriptions that were ever registered, or received notifications. */
export async function subscriptionNamesIn({ administration, completeness }: Names) {
  const [registrations, marks, definitions] = await Promise.all([
    administration.registrations(),
    administration.deliveryMarks(),
    completeness.definitions(),
  ]);
  const names = [
    ...registrations.map(({ name }) => name),
    ...[...marks, ...definitions].map(({ subscription }) => subscription),
  ];
  return [...new Set(names)].filter((name) => name !== null);
}

/** Rejects with `usage` for a name that is no subscription of the store, and has no rows either. */
export async function requireSubscription(
  name: string | undefined,
  store: Names,
  rows: AsyncIterable<unknown>,
): Promise<void> {
  if (name === undefined) return;
  const known = await subscriptionNamesIn(store);
  if (known.includes(name)) return;
  for await (const _ of rows) return;
  throw unknownName('subscription', name, known);
}
