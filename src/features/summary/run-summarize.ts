/** Runs `earshot summarize`: the summaries that the rules or the flags request. */

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
import type { FilterTree } from '../../filter/filter-tree.ts';
import type { Products } from '../../filter/products.ts';
import { withCurrentIndex } from '../products/index-command.ts';
import { chatRequest, estimateTokens } from './answer.ts';
import {
  collectJobs,
  createRules,
  digestJob,
  openSummaryContext,
  productJob,
  type SummaryContext,
  waitingMax,
  windowAt,
} from './jobs.ts';
import { summaryText } from './query-command.ts';
import { loadSummaryRules } from './rules.ts';
import {
  areAllOff,
  type DigestWindow,
  type NewSummaryJob,
  plainSummaryRule,
  subjectName,
} from './terms.ts';
import { type Blocked, factsOf, type JobEnd, lockWaitMs, SummaryWriter } from './worker.ts';

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
  const tree = flags.filter === undefined ? null : readFilter(flags.filter, 'Products', io);
  const { summary, ...place } = loadConfig(io, ['summary', 'data']);
  const rules = await loadSummaryRules(io);
  const fallback = plainSummaryRule(summary.rule);
  const isByFlags = flags.each !== undefined || flags.digest !== undefined;
  await withCurrentIndex(place, io, (products) =>
    withParts(io, ['store'], async ({ store }) => {
      const log = createLogger(io, 'error');
      const context = openSummaryContext(summary, { store, products, log }, io);
      const requested = isByFlags ? await requestedJobs(flags, tree, context, io.signal) : null;
      if (requested === null) await collectAll(context, createRules(rules, fallback), io);
      if (flags.dryRun) {
        return showRequests(requested ?? (await dueJobs(context)), context, io, flags);
      }
      const areOff = requested === null && areAllOff([fallback, ...rules.values()]);
      report(await write(requested, context, io, flags), areOff, context, io);
    }),
  );
}

/** Creates the jobs of the rules up to the end of the log, as a receiver does. */
async function collectAll(
  context: SummaryContext,
  ruleOf: ReturnType<typeof createRules>,
  { signal }: Pick<Io, 'signal'>,
): Promise<void> {
  const release = await context.acquireLock('summaries', { waitMs: lockWaitMs, signal });
  try {
    while (!signal.aborted && (await collectJobs(context, ruleOf)).hasMore);
  } finally {
    release();
  }
}

const dueJobs = ({ summaries, nowUs }: SummaryContext) =>
  summaries.due({ nowUs: nowUs(), digestsUntilUs: nowUs(), limit: waitingMax });

/** Returns the jobs that the flags request, the newest first. Rejects with `usage` for too many. */
async function requestedJobs(
  flags: SummarizeFlags,
  tree: FilterTree | null,
  { products, nowUs }: SummaryContext & { products: Pick<Products, 'find'> },
  signal: AbortSignal,
): Promise<NewSummaryJob[]> {
  const { since, until, subscription, digest } = flags;
  const atUs = nowUs();
  const untilUs = Math.min(until ?? atUs, atUs);
  if (since !== undefined && since >= untilUs) {
    throw new AppError('usage', '--since must be earlier than --until and earlier than now.');
  }
  const jobs: NewSummaryJob[] = [];
  if (digest === undefined) {
    const isByFilter = tree !== null && since === undefined && until === undefined;
    const received = isByFilter ? {} : { fromUs: since ?? untilUs - dayUs, untilUs };
    const limit = flags.limit ?? waitingMax + 1;
    const query = { entity: 'Products', filter: tree, received, limit, records: false } as const;
    const named = subscription === undefined ? query : { ...query, subscription };
    for await (const { row } of products.find(named, signal)) {
      jobs.push(productJob({ ...row, subscription: subscription ?? null }, atUs));
    }
    return atMost(jobs);
  }
  const scope = { subscription: subscription ?? null, filter: flags.filter?.trim() || null };
  const lastUs = Math.min(untilUs, windowAt(digest, atUs).fromUs);
  let window = windowAt(digest, since ?? windowAt(digest, untilUs).fromUs - 1);
  for (; window.untilUs <= lastUs; window = windowAt(digest, window.untilUs)) {
    jobs.unshift(digestJob({ ...window, ...scope }, 0));
    atMost(jobs);
  }
  return jobs.slice(0, flags.limit);
}

/** Above this number the first ones would be dropped. */
function atMost(jobs: NewSummaryJob[]): NewSummaryJob[] {
  if (jobs.length <= waitingMax) return jobs;
  throw new AppError('usage', `More than ${waitingMax} summaries cannot wait.`, {
    advice: 'Select fewer with --limit, --filter or a later --since, or use --digest.',
  });
}

/** Prints the requests with their estimated tokens. */
async function showRequests(
  jobs: readonly NewSummaryJob[],
  context: SummaryContext,
  io: Io,
  { json, limit }: SummarizeFlags,
): Promise<void> {
  let [tokens, requests] = [0, 0];
  for (const job of jobs.slice(0, limit)) {
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

interface Written {
  ends: readonly JobEnd[];
  /** Number of summaries to write. */
  total: number;
  /** The reason why the rest waits. */
  blocked: Blocked | null;
}

/** Writes the requested or due jobs one after the other, and prints each summary. */
async function write(
  requested: readonly NewSummaryJob[] | null,
  context: SummaryContext,
  io: Io,
  { limit = Number.POSITIVE_INFINITY, json }: SummarizeFlags,
): Promise<Written> {
  const { summaries, nowUs } = context;
  const { signal, stdout } = io;
  const enqueued =
    requested && (await summaries.enqueue({ jobs: requested, waitingMax, atUs: nowUs() }));
  const ids = enqueued?.ids;
  const total = Math.min(ids?.length ?? (await dueJobs(context)).length, limit);
  const writer = new SummaryWriter(context, signal);
  const progress = createProgressLine(io.stderr);
  const ends: JobEnd[] = [];
  let blocked: Blocked | null = null;
  while (ends.length < total && blocked === null && !signal.aborted) {
    const release = await context.acquireLock('summaries', { waitMs: lockWaitMs, signal });
    try {
      const [job] = await summaries.due({ nowUs: nowUs(), digestsUntilUs: nowUs(), limit: 1, ids });
      // Another program, such as the receiver, wrote or postponed the rest.
      if (job === undefined) break;
      const end = await writer.write(job);
      if (end.end === 'blocked') blocked = end;
      else ends.push(end);
      if (end.end === 'blocked' || end.end === 'withdrawn') continue;
      if (stdout.isTTY !== true) progress.show(`${ends.length} of ${total} summaries`);
      for await (const row of summaries.find({ ids: [job.id] })) {
        if (json) await printJson(stdout, toSummaryJson(row), 'line');
        else await writeOut(stdout, summaryText(row, io, stdout));
      }
    } finally {
      release();
    }
  }
  progress.clear();
  return { ends, total, blocked };
}

const names = {
  written: 'written',
  template: 'from the template',
  same: 'already present',
  withdrawn: 'without products',
} as const;

/** Prints the totals. Throws `cancelled` if the user stopped it, and `unavailable` if the service did not answer. */
function report(
  { ends, total, blocked }: Written,
  areOff: boolean,
  { model }: SummaryContext,
  io: Io,
): void {
  const counts = Object.entries(names).flatMap(([name, text]) => {
    const count = ends.filter(({ end }) => end === name).length;
    return count === 0 ? [] : [`${count} ${text}`];
  });
  const left = total - ends.length;
  const rest = io.signal.aborted ? laterText : (blocked?.reason ?? '');
  const text = [
    ...(counts.length === 0 ? [] : [`${counts.join(', ')}.`]),
    ...(total > 0 ? [] : [areOff ? nothing.areOff : nothing.found]),
    ...(left > 0 ? [`${left} waiting. ${rest}`] : []),
    ...(model === null && ends.length > 0 ? [noModel] : []),
  ].join(' ');
  if (io.signal.aborted) throw new AppError('cancelled', `Stopped. ${text}`.trim());
  if (blocked?.by === 'service') throw new AppError('unavailable', text.trim());
  io.stderr.write(`${printable(text.trim())}\n`);
}

const noModel =
  'No model is configured: set EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL.';

const laterText =
  'A running receiver with a rule for summaries, or the next `earshot summarize`, writes them.';

const nothing = {
  areOff:
    'No rule requests summaries. Set EARSHOT_SUMMARY, or `summary` in earshot.config.ts. To summarize without a rule: `earshot summarize --each --since 24h`',
  found: 'There is nothing to summarize. For other products: `earshot summarize --each --since 7d`',
};
