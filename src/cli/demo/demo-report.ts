/** The demo's reports: its subscriptions, what was lost on the way to them, and what reconcile restored. */
import { printable } from '../../domain/printable.ts';
import type { DeliveryEntry } from '../../sandbox/delivery/delivery-record.ts';
import { asCalled } from '../called-as.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { runReconcile } from '../reconcile/reconcile-command.ts';
import { ioWith } from '../setup/env-file.ts';
import { shorten, widthOf } from '../table.ts';
import { wrapText } from '../wrap-text.ts';
import type { SubscriptionResult } from './demo-count.ts';
import { demoFilter, demoQueryFlags } from './demo-filter.ts';
import type { PlaceResult } from './demo-query.ts';
import type { DemoWorld } from './demo-world.ts';

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
  found    ${found.byFilter.size} by the filter, ${found.byPlace.size} by collection and place: ${paint('bold', asCalled(`$ earshot query products ${demoQueryFlags}`, io))}
`);
}

/** Lists losses; those of the filtered subscription with its name. */
export function listLosses(io: Io, losses: readonly DeliveryEntry[], name = ''): void {
  if (losses.length === 0) return;
  const to = name === '' ? '' : ` to ${name}`;
  io.stderr.write(
    `${losses.length} lost on the way${to}, as the sandbox was configured to lose them:\n`,
  );
  for (const { productName, event, reason } of losses.slice(0, lossesListedMax)) {
    const begin = `  ${name === '' ? '' : `${name} `}${event} `;
    io.stderr.write(productLines(io, begin, productName, reason ?? 'not known'));
  }
  const more = losses.length - lossesListedMax;
  if (more > 0) io.stderr.write(`  … and ${more} more\n`);
}

/** A line about a product. On a narrow terminal the name is cut in the middle, and the reason stands below it. */
function productLines(
  { stderr }: Pick<Io, 'stderr'>,
  begin: string,
  productName: string,
  reason = '',
): string {
  const width = widthOf(stderr);
  const [name, why] = [printable(productName), printable(reason)];
  const line = `${begin}${name}${why === '' ? '' : `: ${why}`}`;
  if (line.length <= width) return `${line}\n`;
  const lines = why === '' ? [] : wrapText(why, '    ', stderr);
  return [`${begin}${shorten(name, width - begin.length)}`, ...lines, ''].join('\n');
}

export interface Restored {
  /** Rows of the log that reconcile has written, by the subscription's name. */
  recovered: Map<string, number>;
  /** Losses that are not in the log afterwards, one sentence each. */
  missing: string[];
}

/** Compares the log with the sandbox's catalogue as `earshot reconcile` does, and lists what that restored. */
export async function restoreLosses(
  io: Io,
  { settings, sandbox, receiver }: Pick<DemoWorld, 'settings' | 'sandbox' | 'receiver'>,
): Promise<Restored> {
  const paint = painter(io, io.stdout);
  io.stdout.write(
    `\n${paint('bold', asCalled('$ earshot reconcile', io))}   fetches what was lost:\n`,
  );
  await runReconcile(ioWith(io, settings), { subscription: [] });
  const stored = new Set<string>();
  const recovered = new Map<string, number>();
  for await (const { subscription, event, productId, source } of receiver.store.find({})) {
    const name = subscription ?? '';
    stored.add(`${name} ${event} ${productId}`);
    if (source === 'reconcile') recovered.set(name, (recovered.get(name) ?? 0) + 1);
  }
  const names = new Map(
    sandbox.subscriptions().map(({ id, endpoint }) => [id, endpoint?.split('/').at(-1) ?? '']),
  );
  const missing: string[] = [];
  let listed = 0;
  for (const entry of sandbox.entries().filter(({ outcome }) => outcome === 'lost')) {
    const { subscriptionId, event, productId, productName, timesReceivedOk } = entry;
    if (timesReceivedOk > 0) continue;
    const name = names.get(subscriptionId) ?? '';
    const what = `${name} ${event} ${printable(productName)}`;
    if (!stored.has(`${name} ${event} ${productId}`)) missing.push(`${what}: lost, not restored`);
    else if (++listed <= lossesListedMax)
      io.stderr.write(productLines(io, `  restored ${name} ${event} `, productName));
  }
  if (listed > lossesListedMax) io.stderr.write(`  … and ${listed - lossesListedMax} more\n`);
  return { recovered, missing };
}
