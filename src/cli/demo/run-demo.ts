/** Runs `earshot demo`: sandbox, receiver, registration, notifications, counts. */
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
  recoverLosses,
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
  pull?: true;
  seed: number;
}

const onceProductsDefault = 200;

/** `--once` ends within 40 s, including the start and the count. */
const onceTimeoutMs = 32_000;

const onceRatePerSecond = 150;

/** Slow enough to read: one or two products per second match the filter. */
const livelyRatePerSecond = 8;

const mismatchesListedMax = 50;

/** Time after Ctrl-C to recover lost notifications. */
const recoveryTimeoutMs = 20_000;

const pendingPollMs = 100;

/** Runs the demo. Throws `invalid` if the records of sandbox and store differ. */
export async function runDemo(io: Io, flags: DemoFlags): Promise<void> {
  const isPull = flags.pull === true;
  if (!flags.once) showIntro(io, isPull);
  const progress = createProgressLine(io.stderr);
  if (flags.once) progress.show('starting sandbox and receiver …');
  const demo = await openDemoContext(io, publishing(flags), {
    isPull,
    hasFaults: flags.faults === true,
  });
  try {
    if (flags.once) progress.show('registering …');
    await registerDemo(io, demo, flags.once ? 'counting' : 'lively');
    if (flags.once) return await runOnce(io, demo, progress, flags.faults === true);
    await showArrivals(io, demo, flags);
    // After Ctrl-C, skips maintenance, which would delay the end.
    const maintained = io.signal.aborted ? null : await maintainDemo(io, demo);
    if (flags.faults) await recoverShown(io, demo);
    await showFarewell(io, demo, maintained);
  } finally {
    progress.clear();
    await demo.close();
  }
}

/**
 * Recovers lost notifications, after Ctrl-C with a time limit. A product modified or deleted since then is not
 * recovered: the catalogue has its newest state only.
 */
async function recoverShown(io: Io, demo: DemoContext): Promise<void> {
  const isStopped = io.signal.aborted;
  const signal = isStopped ? AbortSignal.timeout(recoveryTimeoutMs) : io.signal;
  if (isStopped) await endPublishing(io, demo, signal);
  try {
    const { missing } = await recoverLosses({ ...io, signal }, demo);
    for (const one of missing) io.stderr.write(`  ${one}: the catalogue has a newer state\n`);
  } catch (error) {
    if (!isStopped || !isAppError(error, 'cancelled')) throw error;
    io.stderr.write(`Recovery did not finish within ${recoveryTimeoutMs / 1_000} s.\n`);
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
    '\nPublishing stopped. Press Ctrl-C again to exit immediately, without removing the data.\n',
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
    // The interactive form shows all three events; the counting form counts products.
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
  await untilPublished(io, demo, progress);
  requireNotStopped(io);
  progress.show('comparing the records of sandbox and store …');
  const { subscriptions, quarantined, mismatches } = await countDemo(receiver.store, sandbox, demo);
  const everything = resultOf(subscriptions, demoName);
  const filtered = resultOf(subscriptions, filteredName);
  const found = await queryDemo(receiver, filteredName, filtered.productIds);
  progress.show('waiting for the summaries …');
  const counted = await countSummaries(io, receiver, sandbox);
  requireNotStopped(io);
  await maintainDemo(io, demo);
  progress.clear();
  listLosses(io, everything.losses);
  listLosses(io, filtered.losses, filteredName);
  const recovery = faults ? await recoverLosses(io, demo) : null;
  const { published, delivered, stored, duplicates } = everything;
  io.stdout.write(
    `A subscription without a filter: ${published} notifications published, ${delivered} delivered, ${stored} stored, ${duplicates} repeated.\n`,
  );
  showFiltered(io, filtered, found, sandbox.holdings().events);
  await showSummaries(io, receiver, { limit: 1, heading: "A summary by the sandbox's model:" });
  const { summaries, rest } = counted;
  if (rest !== null) io.stderr.write(`${rest}\n`);
  const count = { published, delivered, stored, duplicates, quarantined, summaries };
  const recovered = recovery?.recovered.get(demoName) ?? 0;
  io.stdout.write(`${JSON.stringify(faults ? { ...count, recovered } : count)}\n`);
  const all = [
    ...[...mismatches, ...found.mismatches, ...counted.mismatches],
    ...(recovery?.missing ?? []),
  ];
  if (all.length > 0) {
    throw new AppError('invalid', 'The records of the sandbox and of the store differ.', {
      details: all.slice(0, mismatchesListedMax),
    });
  }
}

function requireNotStopped({ signal }: Io): void {
  if (signal.aborted)
    throw new AppError('cancelled', 'Stopped before all notifications were counted.');
}

function resultOf(subscriptions: ReadonlyMap<string, SubscriptionResult>, name: string) {
  const result = subscriptions.get(name);
  if (result) return result;
  throw new AppError('invalid', `The sandbox has no subscription for /notifications/${name}.`);
}

async function untilPublished(
  io: Io,
  { sandbox, isPull }: DemoContext,
  progress: ProgressLine,
): Promise<void> {
  const stop = AbortSignal.any([io.signal, AbortSignal.timeout(onceTimeoutMs)]);
  const done = new AbortController();
  const finished = sandbox.finished
    .then(() => (isPull ? untilRead(sandbox, stop) : undefined))
    .finally(() => done.abort());
  const report = async () => {
    while (!done.signal.aborted && io.stderr.isTTY) {
      // A product may match both subscriptions, and so have two notifications.
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

/** Waits until the entries of all queues are acknowledged, or the signal is aborted. */
async function untilRead(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  while (sandbox.totals().pending > 0 && !signal.aborted) await pause(pendingPollMs, signal);
}
