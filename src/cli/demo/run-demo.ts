/** The run of `earshot demo`: sandbox, receiver, subscription, arrivals and count. */
import { AppError, isAppError } from '../../domain/app-error.ts';
import { demoFaults, noFaults } from '../../sandbox/delivery/faults.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { type Io, pause, untilAborted } from '../io.ts';
import { createProgressLine, type ProgressLine } from '../output.ts';
import { demoName, filteredName, maintainDemo, registerDemo } from './account.ts';
import { type DemoContext, type DemoPublishing, openDemoContext } from './context.ts';
import {
  countDemo,
  listLosses,
  queryDemo,
  restoreLosses,
  type SubscriptionResult,
  showFiltered,
} from './report.ts';
import { showArrivals, showFarewell, showIntro } from './screen.ts';
import { countSummaries, showSummaries } from './summaries.ts';

export interface DemoFlags {
  once?: true;
  products?: number;
  records?: string;
  faults?: true;
  seed: number;
}

const onceProductsDefault = 200;

/** `--once` ends within 40 s; this leaves some for the start and the count. */
const onceTimeoutMs = 32_000;

const onceRatePerSecond = 150;

/** One or two of them match the filter: slow enough to be read. */
const livelyRatePerSecond = 8;

const mismatchesListedMax = 50;

/** Time to restore what was lost after Ctrl-C. */
const restoreTimeoutMs = 20_000;

const pendingPollMs = 100;

/** Throws `invalid` when the records of sandbox and store do not agree. */
export async function runDemo(io: Io, flags: DemoFlags): Promise<void> {
  if (!flags.once) showIntro(io);
  const progress = createProgressLine(io.stderr);
  if (flags.once) progress.show('starting sandbox and receiver …');
  const demo = await openDemoContext(io, publishing(flags));
  try {
    if (flags.once) progress.show('registering …');
    await registerDemo(io, demo, flags.once ? 'counting' : 'lively');
    if (flags.once) return await runOnce(io, demo, progress, flags.faults === true);
    await showArrivals(io, demo, flags);
    // Whoever ends the demo waits for no calls of the account.
    const maintained = io.signal.aborted ? null : await maintainDemo(io, demo);
    if (flags.faults) await restoreShown(io, demo);
    await showFarewell(io, demo, maintained);
  } finally {
    progress.clear();
    await demo.close();
  }
}

/**
 * Restores what was lost, after Ctrl-C within a time limit. What is lost there may have been modified or deleted
 * since, and then the catalogue no longer shows it.
 */
async function restoreShown(io: Io, demo: DemoContext): Promise<void> {
  const isStopped = io.signal.aborted;
  const signal = isStopped ? AbortSignal.timeout(restoreTimeoutMs) : io.signal;
  if (isStopped) await endPublishing(io, demo, signal);
  try {
    const { missing } = await restoreLosses({ ...io, signal }, demo);
    for (const one of missing) io.stderr.write(`  ${one}: the catalogue has a newer state\n`);
  } catch (error) {
    if (!isStopped || !isAppError(error, 'cancelled')) throw error;
    io.stderr.write(`Not everything could be restored within ${restoreTimeoutMs / 1_000} s.\n`);
  }
}

/** Stops publishing, and waits until each notification is delivered or lost. */
async function endPublishing(
  { stdout }: Pick<Io, 'stdout'>,
  { sandbox }: Pick<DemoContext, 'sandbox'>,
  signal: AbortSignal,
): Promise<void> {
  sandbox.pause();
  stdout.write(
    '\nPublishing has stopped. Ctrl-C again ends at once, and leaves the data behind.\n',
  );
  while (sandbox.totals().pending > 0 && !signal.aborted) await pause(pendingPollMs, signal);
}

function publishing(flags: DemoFlags): DemoPublishing {
  const { once, products, records, faults, seed } = flags;
  const count = products ?? (once && records === undefined ? onceProductsDefault : undefined);
  return {
    seed,
    faults: faults ? demoFaults : noFaults,
    ratePerSecond: once ? onceRatePerSecond : livelyRatePerSecond,
    // The lively form shows all three events; the counting one counts products.
    modifiedShare: once ? 0 : 0.2,
    deletedShare: once ? 0 : 0.1,
    ...(count === undefined ? {} : { count }),
    ...(records === undefined ? {} : { recordsFile: records }),
  };
}

async function runOnce(
  io: Io,
  demo: DemoContext,
  progress: ProgressLine,
  faults: boolean,
): Promise<void> {
  const { sandbox, receiver } = demo;
  await finishing(io, sandbox, progress);
  requireGoingOn(io);
  progress.show('comparing the records of sandbox and store …');
  const { subscriptions, quarantined, mismatches } = await countDemo(receiver.store, sandbox);
  const everything = resultOf(subscriptions, demoName);
  const filtered = resultOf(subscriptions, filteredName);
  const found = await queryDemo(receiver, filteredName, filtered.productIds);
  progress.show('waiting for the summaries …');
  const told = await countSummaries(io, receiver, sandbox);
  requireGoingOn(io);
  await maintainDemo(io, demo);
  progress.clear();
  listLosses(io, everything.losses);
  listLosses(io, filtered.losses, filteredName);
  const restored = faults ? await restoreLosses(io, demo) : null;
  showFiltered(io, filtered, found, sandbox.holdings().events);
  const { published, delivered, stored, duplicates } = everything;
  await showSummaries(io, receiver, 1);
  const { summaries, rest } = told;
  if (rest !== null) io.stderr.write(`${rest}\n`);
  const count = { published, delivered, stored, duplicates, quarantined, summaries };
  const recovered = restored?.recovered.get(demoName) ?? 0;
  io.stdout.write(`${JSON.stringify(faults ? { ...count, recovered } : count)}\n`);
  const all = [
    ...[...mismatches, ...found.mismatches, ...told.mismatches],
    ...(restored?.missing ?? []),
  ];
  if (all.length > 0) {
    throw new AppError('invalid', 'The records of the sandbox and of the store do not agree.', {
      details: all.slice(0, mismatchesListedMax),
    });
  }
}

function requireGoingOn({ signal }: Io): void {
  if (signal.aborted) throw new AppError('cancelled', 'Ended before everything was counted.');
}

function resultOf(subscriptions: ReadonlyMap<string, SubscriptionResult>, name: string) {
  const result = subscriptions.get(name);
  if (result) return result;
  throw new AppError('invalid', `The sandbox knows of no subscription to /notifications/${name}.`);
}

async function finishing(io: Io, sandbox: Sandbox, progress: ProgressLine): Promise<void> {
  const stop = AbortSignal.any([io.signal, AbortSignal.timeout(onceTimeoutMs)]);
  const done = new AbortController();
  const finished = sandbox.finished.finally(() => done.abort());
  const report = async () => {
    while (!done.signal.aborted && io.stderr.isTTY) {
      // Two subscriptions: some products have two notifications.
      const { published, delivered } = sandbox.totals();
      const { events } = sandbox.holdings();
      progress.show(
        `published ${events} products; delivered ${delivered} of ${published} notifications`,
      );
      await pause(100, done.signal);
    }
  };
  await Promise.all([
    Promise.race([finished, untilAborted(stop)]).then(() => done.abort()),
    report(),
  ]);
}
