/** The demo's summaries: a worker beside the receiver, and the count of what it had written. */
import { AppError } from '../../domain/app-error.ts';
import { plainSummaryRule, type SummaryReader } from '../../domain/summaries.ts';
import { printable } from '../../domain/text.ts';
import { demoProject } from '../../sandbox/live-settings.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { collectJobs, compileRules } from '../../summary/worker/collect-jobs.ts';
import { type SummaryWorker, startSummaryWorker } from '../../summary/worker/run-summaries.ts';
import { asCalled } from '../called-as.ts';
import { type Io, pause } from '../io.ts';
import { createLogger } from '../logger.ts';
import { painter, shorten, widthOf, wrapText } from '../output.ts';
import type { RunningReceiver } from '../start/serve.ts';
import { openSummaryContext } from '../summaries/summary-context.ts';

/** What a demo may spend; beyond it, summaries wait, as they would with a real service. */
const budget = { requestsPerHour: 250, requestsPerDay: 250, tokensPerDay: 1_000_000 };

/** How long the texts may take when all notifications are there. */
const timeoutMs = 12_000;

const pollMs = 100;

/** Begins before anything is published: one text for each product. */
export async function startDemoSummaries(
  io: Io,
  { store, products }: Pick<RunningReceiver, 'store' | 'products'>,
  { inferenceUrl: url }: Pick<Sandbox, 'inferenceUrl'>,
  dataDir: string,
): Promise<SummaryWorker> {
  const { key: apiKey, models } = demoProject;
  const [model] = models;
  if (model === undefined) throw new AppError('internal', 'The sandbox has no model.');
  const rule = 'each' as const;
  const config = { rule, inference: { url, apiKey, model }, budget, dataDir };
  const log = createLogger(io, 'warn');
  const context = openSummaryContext(config, { store, products, log }, io);
  const ruleOf = compileRules(new Map(), plainSummaryRule(rule));
  // Sets the cursor, as the log is empty.
  await collectJobs(context, ruleOf);
  return startSummaryWorker(context, ruleOf, { pollMs });
}

/**
 * Waits for the texts, and compares them with what the sandbox answered. Ends early with the signal.
 * Gives how many `summaries` are of the model, how many were left and why (`rest`, null when none
 * was), and what does not agree, one sentence each.
 */
export async function countSummaries(
  io: Pick<Io, 'nowUs' | 'signal'>,
  { store, products }: Pick<RunningReceiver, 'store' | 'products'>,
  { inference }: Pick<Sandbox, 'inference'>,
) {
  const { indexedPosition } = await products.indexState();
  const { waiting, asking, isSpent } = await settled(io, store, indexedPosition);
  const mismatches: string[] = [];
  let summaries = 0;
  for await (const { productName, productId, state, text, error } of store.summaries.find({})) {
    const subject = printable(productName ?? productId ?? '');
    if (text?.model != null) summaries += 1;
    if (state === 'failed' || state === 'dropped') mismatches.push(`${subject}: ${error}`);
    if (text?.verified === false) mismatches.push(`${subject}: its text is not verified`);
  }
  const { distinct, repeated } = inference.totals();
  // What is still being asked for is in one of the two counts, and perhaps not in the other.
  if (distinct !== summaries && asking === 0) {
    mismatches.push(`${distinct} requests were answered, ${summaries} texts are kept`);
  }
  if (repeated > 0) mismatches.push(`${repeated} requests were sent twice`);
  const why = isSpent
    ? `for the budget of ${budget.requestsPerHour} requests an hour`
    : 'as there was no time for them';
  const left = waiting + asking;
  return { summaries, rest: left === 0 ? null : `${left} summaries wait ${why}.`, mismatches };
}

/** Resolves when everything is written, or the budget is spent, or the time is up; with what is left then. */
async function settled(
  { nowUs, signal }: Pick<Io, 'nowUs' | 'signal'>,
  store: Pick<RunningReceiver['store'], 'cursor'> & { summaries: SummaryReader },
  position: number,
): Promise<{ waiting: number; asking: number; isSpent: boolean }> {
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const { waiting, asking } = await store.summaries.counts();
    const { requestsLastHour } = await store.summaries.spending(nowUs());
    const isSpent = requestsLastHour >= budget.requestsPerHour;
    const isRead = ((await store.cursor('summaries')) ?? 0) >= position;
    const isDone = isRead && asking === 0 && (waiting === 0 || isSpent);
    if (isDone || waitedMs >= timeoutMs || signal.aborted) return { waiting, asking, isSpent };
    await pause(pollMs, signal);
  }
}

/** Shows the newest texts, once there are any. */
export async function showSummaries(
  io: Io,
  { store }: Pick<RunningReceiver, 'store'>,
  limit: number,
): Promise<void> {
  const paint = painter(io, io.stdout);
  const lines: string[] = [];
  for await (const { productName, text } of store.summaries.find({ state: 'done', limit })) {
    if (text === null) continue;
    const name = shorten(printable(productName ?? ''), widthOf(io.stdout));
    const summary = wrapText(printable(text.text), '  ', io.stdout).join('\n');
    lines.push(`${paint('cyan', name)}\n${summary}\n`);
  }
  if (lines.length === 0) return;
  const command = paint('bold', asCalled(`$ earshot query summaries --limit ${limit}`, io));
  io.stdout.write(`\n${command}   what the sandbox's model says of them:\n${lines.join('')}\n`);
}
