/** Runs the demo, in its lively or in its counting form. */
import { AppError } from '../../domain/app-error.ts';
import { demoFaults, noFaults } from '../../sandbox/delivery/faults.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { Io } from '../io.ts';
import { pause, untilAborted } from '../until-aborted.ts';
import { demoName, filteredName, maintainDemo, registerDemo } from './demo-account.ts';
import { countDemo, type SubscriptionResult } from './demo-count.ts';
import { queryDemo } from './demo-query.ts';
import { listLosses, showFiltered } from './demo-report.ts';
import { showArrivals, showFarewell, showIntro } from './demo-screen.ts';
import { countSummaries, showSummaries } from './demo-summaries.ts';
import { type DemoPublishing, type DemoWorld, openDemoWorld } from './demo-world.ts';

const onceProductsDefault = 200;
/** `--once` ends within 40 s; this leaves some for the start and the count. */
const onceTimeoutMs = 32_000;
const onceRatePerSecond = 150;
/** One or two of them match the filter: slow enough to be read. */
const livelyRatePerSecond = 8;
const mismatchesListedMax = 50;

export interface DemoFlags {
  once?: true;
  products?: number;
  records?: string;
  faults?: true;
  seed: number;
}

/** Throws `invalid` when the records of sandbox and store do not agree. */
export async function runDemo(io: Io, flags: DemoFlags): Promise<void> {
  if (!flags.once) showIntro(io);
  const world = await openDemoWorld(io, publishing(flags));
  try {
    await registerDemo(io, world, flags.once ? 'counting' : 'lively');
    if (flags.once) return await runOnce(io, world);
    await showArrivals(io, world);
    // Whoever ends the demo waits for no calls of the account.
    const maintained = io.signal.aborted ? null : await maintainDemo(io, world);
    await showFarewell(io, world, maintained);
  } finally {
    await world.close();
  }
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

async function runOnce(io: Io, world: DemoWorld): Promise<void> {
  const { sandbox, receiver } = world;
  await finishing(io, sandbox);
  requireGoingOn(io);
  const { subscriptions, quarantined, mismatches } = await countDemo(receiver.store, sandbox);
  const everything = resultOf(subscriptions, demoName);
  const filtered = resultOf(subscriptions, filteredName);
  const found = await queryDemo(receiver, filteredName, filtered.productIds);
  const told = await countSummaries(io, receiver, sandbox);
  requireGoingOn(io);
  await maintainDemo(io, world);
  listLosses(io, everything.losses);
  listLosses(io, filtered.losses, filteredName);
  showFiltered(io, filtered, found, sandbox.holdings().events);
  const { published, delivered, stored, duplicates } = everything;
  await showSummaries(io, receiver, 1);
  const { summaries, rest } = told;
  if (rest !== null) io.stderr.write(`${rest}\n`);
  const count = { published, delivered, stored, duplicates, quarantined, summaries };
  io.stdout.write(`${JSON.stringify(count)}\n`);
  const all = [...mismatches, ...found.mismatches, ...told.mismatches];
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

async function finishing(io: Io, sandbox: Sandbox): Promise<void> {
  const stop = AbortSignal.any([io.signal, AbortSignal.timeout(onceTimeoutMs)]);
  const done = new AbortController();
  const finished = sandbox.finished.finally(() => done.abort());
  const progress = async () => {
    while (!done.signal.aborted && io.stderr.isTTY) {
      const { published, delivered } = sandbox.totals();
      io.stderr.write(`\rpublished ${published}, delivered ${delivered} `);
      await pause(100, done.signal);
    }
    if (io.stderr.isTTY) io.stderr.write('\r\u001b[K');
  };
  await Promise.all([
    Promise.race([finished, untilAborted(stop)]).then(() => done.abort()),
    progress(),
  ]);
}
