/** Runs `earshot demo`: sandbox, receiver, registration, notifications, counts. */

import { type Io, pause } from '../../core/cli/io.ts';
import { createProgressLine, type ProgressLine, painter } from '../../core/cli/output.ts';
import { createClosers } from '../../core/host/job.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { countDemo, countSummaries, listLosses, recoverLosses } from './count.ts';
import { type DemoContext, type DemoFlags, openDemo } from './open-demo.ts';
import { showArrivals, showFarewell, showSummaries } from './screen.ts';

/** Maximum time of `--once` to publish and deliver. */
const onceTimeoutMs = 32_000;

const mismatchesListedMax = 50;

/** Time after Ctrl-C to recover lost notifications. */
const recoveryTimeoutMs = 20_000;

const pollMs = 100;

const stopped = () => new AppError('cancelled', 'Stopped before the end of the demo.');

/** Runs the demo. Throws `invalid` if the records of sandbox and store differ. */
export async function runDemo(io: Io, flags: DemoFlags, version: string): Promise<void> {
  const closers = createClosers();
  const progress = createProgressLine(io.stderr);
  try {
    if (flags.once) progress.show('starting sandbox and receiver …');
    else
      io.stdout.write(`${painter(io, io.stdout)('bold', 'earshot demo')}: ${introOf(flags)} …\n`);
    const demo = await openDemo(io, flags, { version, closers }).catch((error: unknown) => {
      throw io.signal.aborted ? stopped() : error;
    });
    if (flags.once) return await runOnce(io, demo, progress, flags);
    await showArrivals(demo.io, demo, flags);
    if (flags.faults) await recoverShown(demo.io, demo);
    await showFarewell(io, demo);
  } finally {
    progress.clear();
    await closers.closeAll();
  }
}

const introOf = ({ pull }: DemoFlags) =>
  pull
    ? `a receiver reads the queue of a sandbox catalogue.
Starting the receiver, without a certificate and without an open port`
    : `a sandbox catalogue pushes to a receiver, over real HTTPS.
Creating a temporary certificate authority and starting the receiver`;

/**
 * Stops publishing, and recovers lost notifications; after Ctrl-C with a time limit. A product modified or deleted since
 * then is not recovered: the catalogue has its newest state only.
 */
async function recoverShown(io: Io, demo: DemoContext): Promise<void> {
  const signal = io.signal.aborted ? AbortSignal.timeout(recoveryTimeoutMs) : io.signal;
  const { sandbox } = demo;
  sandbox.pause();
  while (sandbox.totals().pending > 0 && !signal.aborted) await pause(pollMs, signal);
  const { missing } = await recoverLosses({ ...io, signal }, demo);
  for (const one of missing) io.stderr.write(`  ${one}: the catalogue has a newer state\n`);
}

async function runOnce(
  io: Io,
  demo: DemoContext,
  progress: ProgressLine,
  { faults, pull }: DemoFlags,
): Promise<void> {
  const { sandbox } = demo;
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(onceTimeoutMs)]);
  for (let pending = 1; !signal.aborted && (pending > 0 || !demo.isPublished()); ) {
    await pause(pollMs, signal);
    const totals = sandbox.totals();
    pending = totals.pending;
    progress.show(`delivered ${totals.delivered} of ${totals.published} notifications`);
  }
  if (demo.isPublished()) await sandbox.finished;
  progress.show('comparing the records of sandbox and store …');
  const { count, losses, mismatches } = await countDemo(demo, { isPull: pull === true });
  progress.show('waiting for the summaries …');
  const { summaries, mismatches: others } = await countSummaries(io, demo);
  if (io.signal.aborted) throw stopped();
  progress.clear();
  listLosses(io, losses);
  const recovery = faults ? await recoverLosses(io, demo) : null;
  const { published, delivered, stored, duplicates } = count;
  io.stdout.write(
    `${published} notifications published, ${delivered} delivered, ${stored} stored, ${duplicates} repeated.\n`,
  );
  await showSummaries(io, demo, { limit: 1, heading: "A summary by the sandbox's model:" });
  const recovered = recovery === null ? {} : { recovered: recovery.recovered };
  io.stdout.write(`${JSON.stringify({ ...count, summaries, ...recovered })}\n`);
  const details = [...mismatches, ...others, ...(recovery?.missing ?? [])];
  if (details.length === 0) return;
  throw new AppError('invalid', 'The records of the sandbox and of the store differ.', {
    details: details.slice(0, mismatchesListedMax),
  });
}
