/** Runs `earshot summarize`: the summaries that the flags select. */

import { withParts } from '../../core/cli/command.ts';
import type { Io } from '../../core/cli/io.ts';
import { createLogger } from '../../core/cli/logger.ts';
import { createProgressLine, printJson, writeOut } from '../../core/cli/output.ts';
import { readFilter } from '../../core/cli/row-forms.ts';
import { loadConfig } from '../../core/config/config.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { dayUs } from '../../core/terms/dates.ts';
import { toSummaryJson } from '../../core/terms/read-models.ts';
import { counted, printable } from '../../core/terms/text.ts';
import { withCurrentIndex } from '../products/current-index.ts';
import { chatRequest, estimateTokens } from './answer.ts';
import {
  digestJob,
  openSummaryContext,
  productJob,
  type SummaryContext,
  waitingMax,
  windowAt,
} from './jobs.ts';
import { summaryText } from './query-command.ts';
import {
  type DigestWindow,
  type NewSummaryJob,
  type Summaries,
  type SummaryJob,
  type SummaryOutcome,
  subjectName,
} from './terms.ts';
import { factsOf, isBlocked, lockWaitMs, SummaryWriter } from './worker.ts';

export interface SummarizeFlags {
  each?: true;
  digest?: DigestWindow;
  since?: number;
  until?: number;
  filter?: string;
  subscription?: string;
  limit?: number;
  dryRun?: true;
  json?: true;
}

export async function summarize(io: Io, flags: SummarizeFlags): Promise<void> {
  if (flags.filter !== undefined) readFilter(flags.filter, 'Products', io);
  const { summary, ...place } = loadConfig(io, ['summary', 'data']);
  await withCurrentIndex(place, io, (products) =>
    withParts(io, ['store'], async ({ store }) => {
      const log = createLogger(io, 'error');
      const context = openSummaryContext(summary, { store, products, log }, io);
      const jobs = jobsOf(flags, context, io);
      if (flags.dryRun) return showRequests(jobs, context, io, flags);
      report(await write(jobs, context, io, flags), context, io);
    }),
  );
}

/** Yields the jobs that the flags select, the newest first. Rejects with `usage` for an empty period. */
async function* jobsOf(
  flags: SummarizeFlags,
  { products, nowUs }: SummaryContext,
  io: Io,
): AsyncGenerator<NewSummaryJob> {
  const { since, until, subscription, digest, limit = Number.POSITIVE_INFINITY } = flags;
  const atUs = nowUs();
  const untilUs = Math.min(until ?? atUs, atUs);
  if (since !== undefined && since >= untilUs) {
    throw new AppError('usage', '--since must be earlier than --until and earlier than now.');
  }
  if (digest !== undefined) {
    const scope = { subscription: subscription ?? null, filter: flags.filter?.trim() || null };
    const spans = completeWindows(digest, { since, untilUs, atUs }).take(limit);
    for (const window of spans) yield digestJob({ ...window, ...scope }, 0);
    return;
  }
  const filter = flags.filter === undefined ? null : readFilter(flags.filter, 'Products', io);
  const isByFilter = filter !== null && since === undefined && until === undefined;
  const received = isByFilter ? {} : { fromUs: since ?? untilUs - dayUs, untilUs };
  const query = {
    ...({ entity: 'Products', filter, received, records: false } as const),
    ...(flags.limit !== undefined && { limit: flags.limit }),
    ...(subscription !== undefined && { subscription }),
  };
  for await (const { row } of products.find(query, io.signal)) {
    yield productJob({ ...row, subscription: subscription ?? null }, atUs);
  }
}

/** Yields the complete windows of a period, the newest first; by default the last one. */
function* completeWindows(
  digest: DigestWindow,
  { since, untilUs, atUs }: { since: number | undefined; untilUs: number; atUs: number },
) {
  const endUs = Math.min(untilUs, windowAt(digest, atUs).fromUs);
  let fromUs = windowAt(digest, endUs).fromUs;
  const firstUs = windowAt(digest, since ?? fromUs - 1).fromUs;
  while (fromUs > firstUs) {
    const window = windowAt(digest, fromUs - 1);
    fromUs = window.fromUs;
    yield window;
  }
}

/** Prints the requests with their estimated tokens. */
async function showRequests(
  jobs: AsyncIterable<NewSummaryJob>,
  context: SummaryContext,
  io: Io,
  { json }: SummarizeFlags,
): Promise<void> {
  let [tokens, requests] = [0, 0];
  for await (const job of jobs) {
    const facts = await factsOf(job, context, io.signal);
    if (facts === null) continue;
    const request = chatRequest(job.kind, facts, context.model?.name ?? 'no model');
    const { kind, productId, productName } = job;
    const estimate = estimateTokens(request);
    [tokens, requests] = [tokens + estimate, requests + 1];
    if (json) {
      const row = { kind, productId, productName, tokens: estimate, request };
      await printJson(io.stdout, row, 'line');
      continue;
    }
    // The instructions are the same for all.
    const shown = request.messages.slice(requests === 1 ? 0 : 1).map(({ content }) => content);
    await writeOut(
      io.stdout,
      `${subjectName(job)}\n\n${shown.map(printableLines).join('\n\n')}\n\n`,
    );
  }
  io.stderr.write(
    `${counted(requests, 'request')}, about ${counted(tokens, 'token')}. Nothing was sent.\n`,
  );
}

const printableLines = (text: string) => text.split('\n').map(printable).join('\n');

/** Writes the jobs one after the other, and prints each summary. `blocked` is the reason why it ended early. */
async function write(
  jobs: AsyncIterable<NewSummaryJob>,
  context: SummaryContext,
  io: Io,
  { json }: SummarizeFlags,
) {
  const { summaries, nowUs } = context;
  const { signal, stdout } = io;
  const writer = new SummaryWriter(context, signal);
  const progress = createProgressLine(io.stderr);
  const results: SummaryOutcome[] = [];
  try {
    for await (const requested of jobs) {
      if (signal.aborted) break;
      const release = await context.acquireLock('summaries', { waitMs: lockWaitMs, signal });
      try {
        const { ids } = await summaries.enqueue({ jobs: [requested], waitingMax, atUs: nowUs() });
        const due = { nowUs: nowUs(), digestsUntilUs: nowUs(), limit: 1, ids };
        for (const job of await summaries.due(due)) {
          const result = await writeOrWithdraw(job, writer, summaries);
          if (isBlocked(result)) return { results, blocked: result };
          results.push(result);
          if (stdout.isTTY !== true) progress.show(counted(results.length, 'summary', 'summaries'));
          for await (const row of summaries.find({ ids })) {
            if (json) await printJson(stdout, toSummaryJson(row), 'line');
            else await writeOut(stdout, summaryText(row, io, stdout));
          }
        }
      } finally {
        release();
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    progress.clear();
  }
  return { results, blocked: null };
}

/** Writes a summary. Removes a new job that could not be completed: otherwise a receiver would write it. */
async function writeOrWithdraw(
  job: SummaryJob,
  writer: SummaryWriter,
  summaries: Summaries,
): Promise<SummaryOutcome> {
  let isEnded = false;
  try {
    const result = await writer.write(job);
    isEnded = !isBlocked(result);
    return result;
  } finally {
    const isNew = job.revision === 1;
    if (!isEnded && isNew) await summaries.settle({ job, result: { outcome: 'withdrawn' } });
  }
}

const names: Readonly<Record<string, (result: SummaryOutcome) => boolean>> = {
  written: (result) => result.outcome === 'done' && result.text.model !== null,
  'from the template': (result) => result.outcome === 'done' && result.text.model === null,
  'already present': ({ outcome }) => outcome === 'same',
  'without products': ({ outcome }) => outcome === 'withdrawn',
  'failed, see the log': ({ outcome }) => outcome === 'postponed',
};

/** Prints the totals. Throws `cancelled` if the user stopped it, and `unavailable` if the service did not answer. */
function report(
  { results, blocked }: Awaited<ReturnType<typeof write>>,
  { model }: SummaryContext,
  io: Io,
): void {
  const counts = Object.entries(names).flatMap(([name, isCounted]) => {
    const count = results.filter(isCounted).length;
    return count === 0 ? [] : [`${count} ${name}`];
  });
  const isStopped = io.signal.aborted;
  const isCut = isStopped || blocked !== null;
  const sentences = [
    counts.length > 0 && `${counts.join(', ')}.`,
    !isStopped && blocked?.reason,
    isCut && continuation,
    !isCut && results.length === 0 && nothing,
    model === null && results.length > 0 && noModel,
  ];
  const text = sentences.filter(Boolean).join(' ');
  if (isStopped) throw new AppError('cancelled', `Stopped. ${text}`);
  if (blocked?.by === 'service') throw new AppError('unavailable', text);
  io.stderr.write(`${printable(text)}\n`);
}

const noModel =
  'No model is configured: set EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL.';

const continuation = 'The same command continues: summaries with unchanged facts cost nothing.';

const nothing =
  'There is nothing to summarize. For other products: `earshot summarize --each --since 7d`';
