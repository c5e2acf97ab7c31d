/** Counts the products that match a filter, by the day on which they were published. */
import { AppError } from '../../domain/app-error.ts';
import type { Entity, FilterTree } from '../../domain/filter-tree.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { ProductRow, Products } from '../../domain/products.ts';
import type { Io } from '../io.ts';
import { allOf, during } from '../products/conditions.ts';
import type { TimeRange } from '../products/time-range.ts';

/** Counted so often between two signs of life. */
const rowsPerSign = 1_000;

export interface Matches {
  entity: Entity;
  /** Products that match. */
  matching: number;
  /** All products, of the same time. */
  total: number;
  /** `matching / total`; 0 where there are none. */
  share: number;
  /** Days with at least one, oldest first, UTC. */
  days: { day: string; matching: number }[];
}

/**
 * A product without a date of publication counts on the day on which it was first received; a tombstone
 * on that of its deletion. With a bound in `published`, only those count whose date lies within.
 */
export async function matchesByDay(
  products: Products,
  asked: { entity: Entity; filter: FilterTree | null; published: TimeRange },
  io: Pick<Io, 'stderr' | 'signal'>,
): Promise<Matches> {
  const { entity, filter, published } = asked;
  const dateField = entity === 'Products' ? 'PublicationDate' : 'DeletionDate';
  const within = during(dateField, published);
  const total = await products.count({ entity, filter: allOf(within) });
  const matched = allOf([...within, ...(filter === null ? [] : [filter])]);
  const counts = new Map<string, number>();
  let matching = 0;
  for await (const { row } of products.find({ entity, filter: matched, records: false })) {
    if (io.signal.aborted) throw new AppError('cancelled', 'Ended before all were counted.');
    const day = formatDateUs(dayOf(row)).slice(0, 10);
    counts.set(day, (counts.get(day) ?? 0) + 1);
    matching += 1;
    tellProgress(matching, io);
  }
  const days = [...counts]
    .map(([day, count]) => ({ day, matching: count }))
    .toSorted((a, b) => (a.day < b.day ? -1 : 1));
  if (matching >= rowsPerSign && io.stderr.isTTY) io.stderr.write('\n');
  return { entity, matching, total, share: total === 0 ? 0 : matching / total, days };
}

function dayOf({ deletionUs, publicationUs, receivedAtUs }: ProductRow): number {
  return deletionUs ?? publicationUs ?? receivedAtUs;
}

function tellProgress(matching: number, { stderr }: Pick<Io, 'stderr'>): void {
  if (stderr.isTTY === true && matching % rowsPerSign === 0) {
    stderr.write(`\r${matching} products match so far`);
  }
}
