/** Runs the demo, in its lively or in its counting form. */
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import { demoFaults, noFaults } from '../../sandbox/delivery/faults.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { Io } from '../io.ts';
import { pause, untilAborted } from '../until-aborted.ts';
import { maintainDemo, registerDemo } from './demo-account.ts';
import { countDemo, type DemoResult } from './demo-count.ts';
import { showArrivals, showFarewell, showIntro } from './demo-screen.ts';
import { type DemoPublishing, type DemoWorld, openDemoWorld } from './demo-world.ts';

const onceProductsDefault = 200;
/** `--once` ends within 40 s; this leaves some for the start and the count. */
const onceTimeoutMs = 32_000;
const onceRatePerSecond = 150;
const lossesListedMax = 50;

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
    const maintained = await maintainDemo(io, world);
    showFarewell(io, await world.receiver.store.counts(), maintained);
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
    ratePerSecond: once ? onceRatePerSecond : 2,
    // The lively form shows all three events; the counting one counts products.
    modifiedShare: once ? 0 : 0.2,
    deletedShare: once ? 0 : 0.1,
    ...(count === undefined ? {} : { count }),
    ...(records === undefined ? {} : { recordsFile: records }),
  };
}

async function runOnce(io: Io, world: DemoWorld): Promise<void> {
  const { sandbox } = world;
  await finishing(io, sandbox);
  const totals = sandbox.totals();
  const result = await countDemo(world.receiver.store, totals, sandbox.entries());
  if (totals.pending > 0) result.mismatches.push(`${totals.pending} were not delivered in time`);
  await maintainDemo(io, world);
  report(io, result);
  io.stdout.write(`${JSON.stringify(result.count)}\n`);
  if (result.mismatches.length > 0) {
    throw new AppError('invalid', 'The records of the sandbox and of the store do not agree.', {
      details: result.mismatches.slice(0, lossesListedMax),
    });
  }
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

function report(io: Io, { losses }: DemoResult): void {
  if (losses.length === 0) return;
  io.stderr.write(`${losses.length} lost on the way, as the sandbox was told to lose them:\n`);
  for (const { productName, event, reason } of losses.slice(0, lossesListedMax)) {
    const why = printable(reason ?? 'not known');
    io.stderr.write(`  ${event} ${printable(productName)}: ${why}\n`);
  }
  const more = losses.length - lossesListedMax;
  if (more > 0) io.stderr.write(`  … and ${more} more\n`);
}
