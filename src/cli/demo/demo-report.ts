/** What `--once` tells of its two subscriptions, and of what was lost on the way to them. */
import { printable } from '../../domain/printable.ts';
import type { DeliveryEntry } from '../../sandbox/delivery/delivery-record.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import type { SubscriptionResult } from './demo-count.ts';
import { demoFilter, demoQueryFlags } from './demo-filter.ts';
import type { PlaceResult } from './demo-query.ts';

const lossesListedMax = 50;

/** Shows that only what matches arrived, and that it is found by its place. */
export function showFiltered(
  io: Io,
  { published, delivered, stored }: SubscriptionResult,
  found: PlaceResult,
  events: number,
): void {
  const paint = painter(io, io.stdout);
  const lost = published === delivered ? '' : `, ${published - delivered} lost on the way`;
  io.stdout.write(`A filtered subscription ran beside the one about everything:
  filter   ${paint('cyan', demoFilter)}
  matched  ${published} of ${events} published${lost}
  stored   ${stored}
  found    ${found.byFilter.size} by the filter, ${found.byPlace.size} by collection and place: ${paint('bold', `query -- products ${demoQueryFlags}`)}
`);
}

/** Lists losses; those of the filtered subscription with its name. */
export function listLosses(io: Io, losses: readonly DeliveryEntry[], name = ''): void {
  if (losses.length === 0) return;
  const to = name === '' ? '' : ` to ${name}`;
  io.stderr.write(`${losses.length} lost on the way${to}, as the sandbox was told to lose them:\n`);
  for (const { productName, event, reason } of losses.slice(0, lossesListedMax)) {
    const why = printable(reason ?? 'not known');
    io.stderr.write(
      `  ${name === '' ? '' : `${name} `}${event} ${printable(productName)}: ${why}\n`,
    );
  }
  const more = losses.length - lossesListedMax;
  if (more > 0) io.stderr.write(`  … and ${more} more\n`);
}
