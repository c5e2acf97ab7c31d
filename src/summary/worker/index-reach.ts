/** Tells whether the product index has got to what a job is about: one that is being rebuilt knows less. */
import type { SummaryJob } from '../../domain/summaries.ts';
import type { SummaryWorld } from './summary-world.ts';

/** A digest needs all that was received in its window. */
export async function isIndexed(
  { position, scope }: Pick<SummaryJob, 'position' | 'scope'>,
  { products, notifications }: Pick<SummaryWorld, 'products' | 'notifications'>,
): Promise<boolean> {
  const indexed = await products.indexedPosition();
  if (position !== null && position <= indexed) return true;
  if (indexed >= (await notifications.lastPosition())) return true;
  if (scope === null) return false;
  const { fromUs: sinceUs, untilUs } = scope;
  const window = { time: 'received', sinceUs, untilUs } as const;
  for await (const last of notifications.find({ ...window, order: 'newest', limit: 1 })) {
    return last.position <= indexed;
  }
  return true;
}
