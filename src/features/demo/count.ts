/** Counts of the demo: notifications, lost and recovered ones, and summaries, compared with those of the sandbox. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Io, pause } from '../../core/cli/io.ts';
import { asCalled, painter, shorten, widthOf } from '../../core/cli/output.ts';
import { parseDate } from '../../core/terms/dates.ts';
import { printable } from '../../core/terms/text.ts';
import type { Products } from '../../filter/products.ts';
import type { DeliveryEntry } from '../../sandbox/delivery/notification.ts';
import { runReconcile } from '../coverage/reconcile-command.ts';
import { ioWith } from '../setup/env-file.ts';
import type { DemoContext } from './open-demo.ts';

/** Lists lost notifications with the reasons, shortened on a narrow terminal. */
export function listLosses({ stderr }: Pick<Io, 'stderr'>, losses: readonly DeliveryEntry[]): void {
  if (losses.length === 0) return;
  stderr.write(`${losses.length} notifications lost in transit, as configured in the sandbox:\n`);
  for (const { productName, event, reason } of losses) {
    const line = `  ${event} ${printable(productName)}: ${printable(reason ?? 'unknown')}`;
    stderr.write(`${shorten(line, widthOf(stderr))}\n`);
  }
}

/**
 * Compares the log with the sandbox's catalogue as `earshot reconcile` does. `recovered`: number of notifications that
 * were fetched; `missing`: losses that are still not in the log, one sentence each.
 */
export async function recoverLosses(
  io: Io,
  { settings, sandbox, receiver }: Pick<DemoContext, 'settings' | 'sandbox' | 'receiver'>,
): Promise<{ recovered: number; missing: string[] }> {
  const command = painter(io, io.stdout)('bold', asCalled('$ earshot reconcile', io));
  io.stdout.write(`\n${command}  # recovers lost notifications\n`);
  await runReconcile(ioWith(io, settings), { subscription: [] });
  const stored = new Set<string>();
  let recovered = 0;
  for await (const { event, productId, source } of receiver.store.find({})) {
    stored.add(`${event} ${productId}`);
    if (source === 'reconcile') recovered += 1;
  }
  const missing = sandbox
    .entries()
    .filter(({ outcome, timesReceivedOk }) => outcome === 'lost' && timesReceivedOk === 0)
    .filter(({ event, productId }) => !stored.has(`${event} ${productId}`))
    .map(({ event, productName }) => `${event} ${printable(productName)}: lost, not recovered`);
  return { recovered, missing };
}

/**
 * Counts in the records of the sandbox and of the store, and matches them notification by notification. `mismatches`:
 * differences, one sentence each.
 */
export async function countDemo(
  { receiver: { store, products }, sandbox }: Pick<DemoContext, 'receiver' | 'sandbox'>,
  { isPull }: { isPull: boolean },
) {
  const { duplicates, quarantined } = await store.counts();
  const entries = sandbox.entries();
  const losses = entries.filter(({ timesReceivedOk }) => timesReceivedOk === 0);
  const delivered = entries.length - losses.length;
  const accepted = entries.filter(({ timesReceivedOk }) => timesReceivedOk > 0);
  const unstored = new Map(accepted.map((entry) => [keyOf(entry), entry.productName]));
  const mismatches: string[] = [];
  let stored = 0;
  for await (const { ackId, productId, productName, notificationDateUs } of store.find({})) {
    stored += 1;
    if (unstored.delete(ackId ?? `${productId} ${notificationDateUs}`)) continue;
    mismatches.push(`${productName ?? productId}: stored twice, or never sent`);
  }
  for (const name of unstored.values()) mismatches.push(`${name}: acknowledged, but not stored`);
  const { receivedOk, accepted: first, pending } = sandbox.totals();
  // The sandbox does not count how often an entry of a queue was read.
  if (!isPull && duplicates !== receivedOk - first) {
    mismatches.push(`${receivedOk - first} duplicates acknowledged, ${duplicates} counted`);
  }
  if (quarantined > 0) mismatches.push(`${quarantined} bodies in quarantine`);
  if (pending > 0) mismatches.push(`${pending} notifications not delivered in time`);
  const unread = await waitForIndex(products);
  if (unread > 0) mismatches.push(`${unread} notifications are not indexed`);
  const count = { published: entries.length, delivered, stored, duplicates, quarantined };
  return { count, losses, mismatches };
}

function keyOf({ ackId, productId, notificationDate }: DeliveryEntry): string {
  return ackId ?? `${productId} ${parseDate(notificationDate)?.us}`;
}

/** Maximum wait for the index. */
const indexTimeoutMs = 4_000;

const pollMs = 20;

/** Waits until the index has read the log; resolves with the number of unread notifications. */
export async function waitForIndex(products: Pick<Products, 'indexProgress'>): Promise<number> {
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const { indexedPosition, lastPosition } = await products.indexProgress();
    const unread = lastPosition - indexedPosition;
    if (unread === 0 || waitedMs >= indexTimeoutMs) return unread;
    await delay(pollMs);
  }
}

/** Time without a new summary after which the demo stops waiting. */
const idleMs = 12_000;

/** Opens the summaries; null in a program without them. */
export async function openSummaries(
  { features }: Pick<Io, 'features'>,
  { receiver: { store } }: Pick<DemoContext, 'receiver'>,
) {
  const source = features.find(({ productTexts }) => productTexts)?.productTexts;
  return (await source?.())?.reader(store) ?? null;
}

/**
 * Waits for the summaries while there are new ones, and compares them with the answers of the sandbox. Ends early if the
 * signal is aborted. `summaries`: number written by the model; `mismatches`: differences, one sentence each.
 */
export async function countSummaries(
  io: Pick<Io, 'signal' | 'features'>,
  demo: Pick<DemoContext, 'receiver' | 'sandbox'>,
) {
  const { signal } = io;
  const { receiver, sandbox } = demo;
  const { store, products } = receiver;
  const texts = await openSummaries(io, demo);
  if (texts === null) return { summaries: 0, mismatches: [] };
  const { indexedPosition } = await products.indexProgress();
  let state = '';
  let changedMs = performance.now();
  while (!signal.aborted && performance.now() - changedMs < idleMs) {
    const { waiting } = await texts.waiting();
    const position = (await store.cursor('summaries')) ?? 0;
    if (waiting === 0 && position >= indexedPosition) break;
    if (state !== `${position} ${waiting}`) changedMs = performance.now();
    state = `${position} ${waiting}`;
    await pause(100, signal);
  }
  const mismatches: string[] = [];
  let summaries = 0;
  for await (const { productName, text, reason } of texts.find({})) {
    if (text?.model != null) summaries += 1;
    else mismatches.push(`${printable(productName ?? '')}: ${reason ?? 'no summary'}`);
  }
  const { answered = 0 } = sandbox.inference.totals().outcomes;
  if (answered !== summaries) {
    mismatches.push(`${answered} requests answered, ${summaries} summaries stored`);
  }
  return { summaries, mismatches };
}
