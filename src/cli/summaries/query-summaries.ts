/** Answers `earshot query summaries`. */
import { stringify } from 'csv-stringify/sync';
import { readDataConfig } from '../../config/read-config.ts';
import { readVariables } from '../../config/read-variables.ts';
import type { SummaryBudget, SummaryRow } from '../../domain/summaries.ts';
import { summaryFields, toSummaryJson } from '../../domain/summary-rows.ts';
import { openStoreReader } from '../../store/store.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { type OutputForm, writeJson } from '../notification-output.ts';
import { writeForeign, writeOut } from '../write-out.ts';
import { minuteOf } from './subject-name.ts';
import { type QuerySummariesFlags, summaryRowsDefault } from './summary-flags.ts';
import { textLines } from './text-lines.ts';
import { queueNote, waitsForItsTurn } from './waiting-turn.ts';

export async function querySummaries(io: Io, flags: QuerySummariesFlags): Promise<void> {
  const {
    output: form,
    kind,
    state,
    productId,
    subscription,
    since: sinceUs,
    until: untilUs,
    before,
  } = flags;
  const verified = flags.unverified ? false : undefined;
  const limit = flags.limit ?? (form === 'table' ? summaryRowsDefault : undefined);
  const query = { kind, state, productId, subscription, verified, sinceUs, untilUs, limit };
  const store = openStoreReader(readDataConfig(io).dataDir);
  const nowUs = io.nowUs();
  let last: SummaryRow | undefined;
  let count = 0;
  let hasQueue = false;
  const noted = async function* () {
    for await (const row of store.summaries.find({ ...query, beforeId: before })) {
      last = row;
      count += 1;
      hasQueue ||= waitsForItsTurn(row, nowUs);
      yield row;
    }
  };
  try {
    await write(io, form, noted());
    if (form === 'table' && hasQueue)
      io.stderr.write(await queueNote(store.summaries, budgetOf(io), nowUs));
  } finally {
    await store.close();
  }
  if (form !== 'table') return;
  if (count === 0) io.stderr.write(nothingThere(flags));
  if (last !== undefined && count === limit) {
    io.stderr.write(`${count} shown. For what may follow: the same with --before ${last.id}\n`);
  }
}

/** The limits that are set; one that cannot be read keeps nothing waiting. */
function budgetOf(io: Io): SummaryBudget {
  const { summaryRequestsPerHour, summaryRequestsPerDay, summaryTokensPerDay } = readVariables(io, [
    'summaryRequestsPerHour',
    'summaryRequestsPerDay',
    'summaryTokensPerDay',
  ]).values;
  return {
    requestsPerHour: summaryRequestsPerHour ?? Number.POSITIVE_INFINITY,
    requestsPerDay: summaryRequestsPerDay ?? Number.POSITIVE_INFINITY,
    tokensPerDay: summaryTokensPerDay ?? Number.POSITIVE_INFINITY,
  };
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

async function write(
  io: Pick<Io, 'stdout' | 'env' | 'nowUs'>,
  form: OutputForm,
  rows: AsyncIterable<SummaryRow>,
): Promise<void> {
  const { stdout } = io;
  if (form === 'table') return writeTexts(io, rows);
  const outputRows = mapped(rows);
  if (form === 'json') return void (await writeJson(stdout, outputRows));
  if (form === 'csv') await writeOut(stdout, `${summaryFields.join(',')}\n`);
  for await (const row of outputRows) await writeForeign(stdout, lineOf(form, row));
}

/** Texts are for reading: below each other, not in columns. */
async function writeTexts(
  io: Pick<Io, 'stdout' | 'env' | 'nowUs'>,
  rows: AsyncIterable<SummaryRow>,
): Promise<void> {
  const paint = painter(io, io.stdout);
  const nowUs = io.nowUs();
  for await (const row of rows) {
    const mark = `${paint('dim', `#${row.id}`)} ${paint(colourOf(row), stateOf(row, nowUs))}`;
    await writeOut(io.stdout, textLines(row, { mark, reason: row.error }, paint, io.stdout));
  }
}

function colourOf({ state, text }: SummaryRow): 'red' | 'yellow' | 'dim' {
  if (state === 'failed') return 'red';
  return state === 'dropped' || text?.verified === false ? 'yellow' : 'dim';
}

function stateOf(row: SummaryRow, nowUs: number): string {
  const { state, text, nextTryAtUs } = row;
  if (waitsForItsTurn(row, nowUs)) return 'waiting for its turn';
  if (state === 'waiting' && nextTryAtUs !== null) {
    return `waiting, next retry ${minuteOf(nextTryAtUs)} UTC`;
  }
  if (text === null || state === 'asking') return state;
  if (text.model === null) return `${state}, from the facts alone`;
  return text.verified ? state : `${state}, not verified`;
}

type OutputRow = ReturnType<typeof toSummaryJson>;

function lineOf(form: 'ndjson' | 'csv', row: OutputRow): string {
  const cells = summaryFields.map((field) =>
    field === 'doubts' ? row.doubts.join('; ') : row[field],
  );
  // Names come from outside: a spreadsheet must not take one for a formula.
  return form === 'ndjson'
    ? `${JSON.stringify(row)}\n`
    : stringify([cells], { escape_formulas: true, cast: { boolean: String } });
}

async function* mapped(rows: AsyncIterable<SummaryRow>): AsyncGenerator<OutputRow> {
  for await (const row of rows) yield toSummaryJson(row);
}
