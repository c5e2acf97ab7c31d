/** `earshot query summaries`: lists summaries and their state. */
import { Option } from 'commander';
import { checkConfig } from '../../config/config.ts';
import { shortDateUs } from '../../domain/dates.ts';
import {
  type SummaryBudget,
  type SummaryKind,
  type SummaryReader,
  type SummaryRow,
  type SummaryState,
  summaryFields,
  summaryKinds,
  summaryStates,
  toSummaryJson,
} from '../../domain/summaries.ts';
import { defineCommand, type Parts } from '../command.ts';
import {
  addOutputForms,
  addSpan,
  limitOption,
  type OutputFlags,
  readTime,
  wholeNumber,
} from '../flags.ts';
import type { Io } from '../io.ts';
import { painter, writeOut } from '../output.ts';
import {
  type OutputForm,
  outputForms,
  type RowForms,
  reportNextPage,
  writeRows,
} from '../row-forms.ts';
import { textLines } from '../summaries/rows.ts';

/** Default limit of tables; the other formats are unlimited. */
const summaryRowsDefault = 20;

interface QuerySummariesFlags extends OutputFlags<OutputForm> {
  kind?: SummaryKind;
  state?: SummaryState;
  productId?: string;
  subscription?: string;
  unverified?: true;
  since?: number;
  until?: number;
  before?: number;
  limit?: number;
}

export const querySummariesCommand = defineCommand('summaries', {
  description: 'List summaries: state and text, or the reason why the text is missing.',
  flags: (command, io) => {
    command
      .addOption(new Option('--kind <kind>', 'kind of summary').choices(summaryKinds))
      .addOption(new Option('--state <state>', 'state of the summary').choices(summaryStates))
      .option('--product-id <id>', 'id of the product')
      .option('--subscription <name>', 'subscription name (default: all)')
      .option('--unverified', 'only summaries with a claim that the facts do not confirm');
    addSpan(command, readTime(io), 'when the summary was queued')
      .option('--before <id>', 'only rows before this row (lower ids)', wholeNumber(1))
      .addOption(limitOption({ note: `${summaryRowsDefault} in tables, otherwise unlimited` }));
    return addOutputForms(command, outputForms);
  },
  help: `The newest summary is first. In the table, #12 is the id 12. The facts are the data that the model
gets. States:
  waiting  waits for the first request or for a retry, for example because of a limit
  asking   the request to the model is in progress
  done     the text is written
  failed   permanent failure; the field error has the reason
  dropped  removed from the queue: by a command, after 7 days, or because the queue is full

Fields of JSON and CSV: kind, productId, productName, text, model, verified, createdAt, error, id,
state, subscription, doubts, attempts, requestedAt, nextTryAt, receivedFrom, receivedUntil,
collection, area, filter. Times are ISO 8601 UTC.
  model     language model; null if the summary was written without a model
  verified  false if the facts do not confirm all claims of the text
  error     reason why the model has written no text
  doubts    claims that the facts do not confirm
receivedFrom, receivedUntil, collection, area and filter define which notifications a digest
summarizes. In CSV, earshot puts an apostrophe before a text that a spreadsheet would read as a
formula.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot query summaries                      the newest summaries
  $ earshot query summaries --state failed       failed summaries, for earshot summarize --retry
  $ earshot query summaries --kind digest --since 7d --output ndjson | jq -r .text    texts`,
  needs: ['reader'],
  run: querySummaries,
});

async function querySummaries(
  io: Io & Pick<Parts, 'reader'>,
  flags: QuerySummariesFlags,
): Promise<void> {
  const { output: form, kind, state, productId, subscription, since, until, before } = flags;
  const { summaries } = io.reader;
  const limit = flags.limit ?? (form === 'table' ? summaryRowsDefault : undefined);
  const query = {
    ...{ kind, state, productId, subscription, limit },
    verified: flags.unverified ? false : undefined,
    sinceUs: since,
    untilUs: until,
    beforeId: before,
  };
  const nowUs = io.nowUs();
  let hasQueue = false;
  const forms: RowForms<SummaryRow> = {
    table: async (rows) => {
      hasQueue = await writeTexts(io, rows, nowUs);
    },
    json: toSummaryJson,
    fields: summaryFields,
    values: (row) => ({ ...toSummaryJson(row), doubts: row.text?.doubts.join('; ') ?? '' }),
  };
  const { count, last } = await writeRows(io.stdout, form, summaries.find(query), forms);
  if (form !== 'table') return;
  if (hasQueue) io.stderr.write(await queueNote(summaries, budgetOf(io), nowUs));
  if (last === undefined) return void io.stderr.write(noneFound(flags));
  reportNextPage(io, { count, limit }, `--before ${last.id}`);
}

/** Configured limits. An invalid one counts as unlimited. */
function budgetOf(io: Io): SummaryBudget {
  const unlimited = Number.POSITIVE_INFINITY;
  return (
    checkConfig(io, ['summary']).config.summary?.budget ?? {
      requestsPerHour: unlimited,
      requestsPerDay: unlimited,
      tokensPerDay: unlimited,
    }
  );
}

const noneOf = {
  failed: 'No failed summaries.',
  dropped: 'No dropped summaries.',
  waiting: 'No waiting summaries.',
  asking: 'No requests in progress.',
} as const;

/** Message for an empty result. */
function noneFound({ state, unverified }: QuerySummariesFlags): string {
  if (unverified) return 'No unverified summary matches.\n';
  if (state !== undefined && state !== 'done') return `${noneOf[state]}\n`;
  return 'No summary matches. To create summaries, set EARSHOT_SUMMARY or run `earshot summarize --each --since 24h`.\n';
}

/** Prints summaries as paragraphs. Returns true if at least one is queued. */
async function writeTexts(
  io: Pick<Io, 'stdout' | 'env'>,
  rows: AsyncIterable<SummaryRow>,
  nowUs: number,
): Promise<boolean> {
  const paint = painter(io, io.stdout);
  let hasQueue = false;
  for await (const row of rows) {
    hasQueue ||= isQueued(row, nowUs);
    const mark = `${paint('dim', `#${row.id}`)} ${paint(colourOf(row), stateOf(row, nowUs))}`;
    await writeOut(io.stdout, textLines(row, { mark, reason: row.error }, paint, io.stdout));
  }
  return hasQueue;
}

function colourOf({ state, text }: SummaryRow): 'red' | 'yellow' | 'dim' {
  if (state === 'failed') return 'red';
  return state === 'dropped' || text?.verified === false ? 'yellow' : 'dim';
}

function stateOf(row: SummaryRow, nowUs: number): string {
  const { state, text, nextAttemptAtUs } = row;
  if (isQueued(row, nowUs)) return 'queued';
  if (state === 'waiting' && nextAttemptAtUs !== null) {
    return `waiting, next retry ${shortDateUs(nextAttemptAtUs)} UTC`;
  }
  if (text === null || state === 'asking') return state;
  if (text.model === null) return `${state}, without a model`;
  return text.verified ? state : `${state}, not verified`;
}

/** Returns true if the summary is due and only waits for others before it. */
function isQueued(
  { state, nextAttemptAtUs }: Pick<SummaryRow, 'state' | 'nextAttemptAtUs'>,
  nowUs: number,
): boolean {
  return state === 'waiting' && nextAttemptAtUs !== null && nextAttemptAtUs <= nowUs;
}

/** Reports the exhausted limit and its end, from the summary that reached it; empty without one. */
async function queueNote(
  summaries: Pick<SummaryReader, 'find' | 'spending'>,
  budget: SummaryBudget,
  nowUs: number,
): Promise<string> {
  if (!(await isSpent(summaries, budget, nowUs))) return '';
  for await (const { error, attempts, nextAttemptAtUs } of summaries.find({ state: 'waiting' })) {
    // A summary that waits for the budget has no failed attempt.
    if (error === null || attempts > 0 || nextAttemptAtUs === null || nextAttemptAtUs <= nowUs)
      continue;
    return `Queued summaries are waiting. ${error} Next attempt: ${shortDateUs(nextAttemptAtUs)} UTC.\n`;
  }
  return '';
}

/** Returns true if another request with the average number of tokens would exceed a limit. */
async function isSpent(
  summaries: Pick<SummaryReader, 'spending'>,
  { requestsPerHour, requestsPerDay, tokensPerDay }: SummaryBudget,
  nowUs: number,
): Promise<boolean> {
  const { requestsLastHour, requestsLastDay, tokensLastDay } = await summaries.spending(nowUs);
  if (requestsLastHour >= requestsPerHour || requestsLastDay >= requestsPerDay) return true;
  const nextTokens = Math.max(tokensLastDay / Math.max(requestsLastDay, 1), 1);
  return tokensLastDay + nextTokens > tokensPerDay;
}
