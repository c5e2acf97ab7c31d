/** `earshot query summaries`: what was written about what arrived. */
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

/** A person's first look; programs get everything unless they set a limit. */
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
  description: 'Show the texts about what arrived, and why one is missing or put off.',
  flags: (command, io) => {
    command
      .addOption(new Option('--kind <kind>', 'product or digest').choices(summaryKinds))
      .addOption(new Option('--state <state>', 'how far it is').choices(summaryStates))
      .option('--product-id <id>', 'the text about this product')
      .option('--subscription <name>', 'called for by this subscription')
      .option('--unverified', 'only texts that state something the facts do not have');
    addSpan(command, readTime(io), 'requested')
      .option('--before <id>', 'only earlier ones than this id', wholeNumber(1))
      .addOption(limitOption({ note: `table: ${summaryRowsDefault}, else all` }));
    return addOutputForms(command, outputForms);
  },
  help: `Newest first; #12 is the id. Fields of the JSON and CSV rows: kind productId productName text model
verified createdAt error id state subscription doubts attempts requestedAt nextTryAt receivedFrom
receivedUntil collection area filter. Times are ISO 8601 UTC. text is plain; model is null where it
was made of the facts alone. doubts: what the text has, but the facts do not. error: why there is no
text of the model, or not yet. receivedFrom, receivedUntil, collection, area and filter tell what a
digest is about. In CSV, a text that a spreadsheet would take for a formula begins with an
apostrophe.

Examples:
  $ earshot query summaries
  $ earshot query summaries --kind digest --since 7d --output ndjson | jq -r .text
  $ earshot query summaries --state failed     and then: earshot summarize --retry all
  $ earshot query summaries --unverified --json`,
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
  if (last === undefined) return void io.stderr.write(nothingThere(flags));
  reportNextPage(io, { count, limit }, `--before ${last.id}`);
}

/** The limits that are set; one that cannot be read keeps nothing waiting. */
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
  failed: 'None has failed.',
  dropped: 'None was dropped.',
  waiting: 'None waits.',
  asking: 'None is being asked for.',
} as const;

/** Of some there are none where all is well. */
function nothingThere({ state, unverified }: QuerySummariesFlags): string {
  if (unverified) return 'None that matches states what the facts do not have.\n';
  if (state !== undefined && state !== 'done') return `${noneOf[state]}\n`;
  return 'No summary matches. Rules ask for them (EARSHOT_SUMMARY), or: `earshot summarize --each --since 24h`\n';
}

/** Texts are for reading: below each other, not in columns. Returns true when one waits for its turn. */
async function writeTexts(
  io: Pick<Io, 'stdout' | 'env'>,
  rows: AsyncIterable<SummaryRow>,
  nowUs: number,
): Promise<boolean> {
  const paint = painter(io, io.stdout);
  let hasQueue = false;
  for await (const row of rows) {
    hasQueue ||= waitsForItsTurn(row, nowUs);
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
  if (waitsForItsTurn(row, nowUs)) return 'waiting for its turn';
  if (state === 'waiting' && nextAttemptAtUs !== null) {
    return `waiting, next retry ${shortDateUs(nextAttemptAtUs)} UTC`;
  }
  if (text === null || state === 'asking') return state;
  if (text.model === null) return `${state}, from the facts alone`;
  return text.verified ? state : `${state}, not verified`;
}

/** Whether it could be written now, but for those before it. */
function waitsForItsTurn(
  { state, nextAttemptAtUs }: Pick<SummaryRow, 'state' | 'nextAttemptAtUs'>,
  nowUs: number,
): boolean {
  return state === 'waiting' && nextAttemptAtUs !== null && nextAttemptAtUs <= nowUs;
}

/** Which limit is spent and until when, as the summary that met it says; empty where none is. */
async function queueNote(
  summaries: Pick<SummaryReader, 'find' | 'spending'>,
  budget: SummaryBudget,
  nowUs: number,
): Promise<string> {
  if (!(await isSpent(summaries, budget, nowUs))) return '';
  for await (const { error, attempts, nextAttemptAtUs } of summaries.find({ state: 'waiting' })) {
    // What waits for the budget has had no failure of its own.
    if (error === null || attempts > 0 || nextAttemptAtUs === null || nextAttemptAtUs <= nowUs)
      continue;
    return `What waits for its turn waits for the same as another one: ${error} Next try: ${shortDateUs(nextAttemptAtUs)} UTC.\n`;
  }
  return '';
}

/** True where another request, of as many tokens as the others, would exceed a limit. */
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
