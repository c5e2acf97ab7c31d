/** Summaries of the demo: the settings of the receiver, and the count of its summaries. */

import { type Io, pause } from '../../core/cli/io.ts';
import { painter, shorten, widthOf, wrapText } from '../../core/cli/output.ts';
import { printable } from '../../core/terms/text.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';

/** When the budget is used up, summaries wait, as with a real service. */
const requestsPerDay = 250;

/** Settings of the receiver: one summary for each product. */
export const summarySettings = {
  EARSHOT_SUMMARY: 'each',
  EARSHOT_SUMMARY_REQUESTS_PER_DAY: String(requestsPerDay),
  EARSHOT_SUMMARY_TOKENS_PER_DAY: '1000000',
};

/** Maximum wait without a new summary after the last notification. */
const idleMsMax = 12_000;

const pollMs = 100;

/** Opens the texts of the demo's store; null in a program without summaries. */
async function openTexts({ features }: Pick<Io, 'features'>, store: RunningReceiver['store']) {
  const source = features.find(({ productTexts }) => productTexts)?.productTexts;
  return (await source?.())?.reader(store) ?? null;
}

/**
 * Waits for the summaries, and compares them with the answers of the sandbox. Ends early if the signal is aborted.
 * `summaries`: number written by the model; `rest`: number of those left, null for none; `mismatches`: differences, one
 * sentence each.
 */
export async function countSummaries(
  io: Pick<Io, 'nowUs' | 'signal' | 'features'>,
  { store, products }: Pick<RunningReceiver, 'store' | 'products'>,
  { inference }: Pick<Sandbox, 'inference'>,
) {
  const { nowUs, signal } = io;
  const texts = await openTexts(io, store);
  if (texts === null) return { summaries: 0, rest: null, mismatches: [] };
  const { indexedPosition } = await products.indexState();
  let untilMs = performance.now() + idleMsMax;
  let [left, isSpent] = [Number.POSITIVE_INFINITY, false];
  for (let isRead = false; !isRead || (left > 0 && !isSpent); await pause(pollMs, signal)) {
    if (performance.now() > untilMs || signal.aborted) break;
    const { waiting } = await texts.waiting();
    if (waiting !== left) untilMs = performance.now() + idleMsMax;
    left = waiting;
    isRead = ((await store.cursor('summaries')) ?? 0) >= indexedPosition;
    isSpent = (await texts.spending(nowUs())).requests >= requestsPerDay;
  }
  const mismatches: string[] = [];
  let summaries = 0;
  for await (const { productName, text, state, reason } of texts.find({})) {
    if (text?.model != null) summaries += 1;
    else if (state === 'done') mismatches.push(`${printable(productName ?? '')}: ${reason}`);
  }
  const { answered = 0 } = inference.totals().outcomes;
  // A request in flight may be in one of the two counts only.
  if (answered !== summaries && left === 0) {
    mismatches.push(`${answered} requests answered, ${summaries} summaries stored`);
  }
  const why = isSpent
    ? `the budget of ${requestsPerDay} requests per day is used up`
    : 'no more were written in time';
  return { summaries, rest: left === 0 ? null : `${left} summaries waiting: ${why}.`, mismatches };
}

/** Prints the newest summaries, if there are any, below a heading. */
export async function showSummaries(
  io: Io,
  { store }: Pick<RunningReceiver, 'store'>,
  { limit, heading }: { limit: number; heading: string },
): Promise<void> {
  const texts = await openTexts(io, store);
  const paint = painter(io, io.stdout);
  const lines: string[] = [];
  for await (const { productName, text } of texts?.find({ state: 'done', limit }) ?? []) {
    if (text === null) continue;
    const name = shorten(printable(productName ?? ''), widthOf(io.stdout));
    const summary = wrapText(printable(text.text), '  ', io.stdout).join('\n');
    lines.push(`${paint('cyan', name)}\n${summary}\n`);
  }
  if (lines.length > 0) io.stdout.write(`\n${heading}\n${lines.join('')}\n`);
}
