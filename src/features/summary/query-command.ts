/** `earshot query summaries`: lists summaries and their state. */

import { Option } from 'commander';
import { defineCommand, type Parts } from '../../core/cli/command.ts';
import {
  addOutputForms,
  addSpan,
  beforeOption,
  limitOption,
  type OutputFlags,
} from '../../core/cli/flags.ts';
import type { Io, Output } from '../../core/cli/io.ts';
import { painter, wrapText, writeOut } from '../../core/cli/output.ts';
import {
  type OutputForm,
  outputForms,
  reportNextPage,
  requireSubscription,
  writeRows,
} from '../../core/cli/row-forms.ts';
import { shortDateUs } from '../../core/terms/dates.ts';
import { summaryKinds, summaryStates } from '../../core/terms/ports.ts';
import { summaryFields, toSummaryJson } from '../../core/terms/read-models.ts';
import { printable } from '../../core/terms/text.ts';
import { type SummaryQuery, type SummaryRow, subjectName } from './terms.ts';

/** Default limit of tables; the other formats are unlimited. */
const summaryRowsDefault = 20;

interface QuerySummariesFlags
  extends OutputFlags<OutputForm>,
    Pick<SummaryQuery, 'kind' | 'state' | 'productId' | 'subscription' | 'limit'> {
  since?: number;
  until?: number;
  before?: number;
}

export const querySummariesCommand = defineCommand('summaries', {
  description: 'List summaries: state and text, or the reason why the text is missing.',
  flags: (command, io) => {
    command
      .addOption(new Option('--kind <kind>', 'kind of summary').choices(summaryKinds))
      .addOption(new Option('--state <state>', 'state of the summary').choices(summaryStates))
      .option('--product-id <id>', 'id of the product')
      .option('--subscription <name>', 'subscription name (default: all)');
    addSpan(command, io, 'when the summary was requested')
      .addOption(beforeOption())
      .addOption(limitOption({ note: `${summaryRowsDefault} in tables, otherwise unlimited` }));
    return addOutputForms(command, outputForms);
  },
  help: `The newest summary is first. In the table, #12 is the id 12. States:
  waiting  waits for its turn, the end of its period, the budget or the service
  done     the text is written

Fields of JSON and CSV: ${summaryFields.slice(0, 8).join(', ')},
${summaryFields.slice(8).join(', ')}.
Times are ISO 8601 UTC.
  model   language model; null if the text is from the template
  facts   the values by their names, also those that the text does not contain
  reason  why the summary waits, or why the text is from the template
receivedFrom, receivedUntil and filter define which products a digest summarizes. In CSV, facts is
JSON, and earshot puts an apostrophe before a text that a spreadsheet would read as a formula.

Examples:
  $ earshot query summaries                      the newest summaries
  $ earshot query summaries --state waiting      summaries that wait, with the reason
  $ earshot query summaries --kind digest --since 7d --output ndjson | jq -r .text    texts`,
  needs: ['reader'],
  run: querySummaries,
});

async function querySummaries(
  io: Io & Pick<Parts, 'reader'>,
  flags: QuerySummariesFlags,
): Promise<void> {
  const { output: form, kind, state, productId, subscription } = flags;
  const limit = flags.limit ?? (form === 'table' ? summaryRowsDefault : undefined);
  const rows = io.reader.summaries.find({ subscription, limit: 1 });
  await requireSubscription(subscription, io.reader, rows);
  const query = {
    ...{ kind, state, productId, subscription, limit },
    ...{ sinceUs: flags.since, untilUs: flags.until, beforeId: flags.before },
  };
  const { count, last } = await writeRows(io.stdout, form, io.reader.summaries.find(query), {
    table: async (rows) => {
      for await (const row of rows) await writeOut(io.stdout, summaryText(row, io, io.stdout));
    },
    json: toSummaryJson,
    fields: summaryFields,
    values: (row) => ({ ...toSummaryJson(row), facts: JSON.stringify(row.text?.facts ?? null) }),
  });
  if (form !== 'table') return;
  if (last !== undefined) return reportNextPage(io, { count, limit }, `--before ${last.id}`);
  io.stderr.write(
    'No summary matches. To create summaries, set EARSHOT_SUMMARY or run `earshot summarize --each --since 24h`.\n',
  );
}

/** Formats a summary as a paragraph for the width of the output. */
export function summaryText(row: SummaryRow, { env }: Pick<Io, 'env'>, output: Output): string {
  const paint = painter({ env }, output);
  const { id, text, reason } = row;
  // Wrapped before it is painted: escape codes have no width.
  const below = (line: string) => wrapText(printable(line), '  ', output);
  const lines = [
    `${paint('bold', subjectName(row))}  ${paint('dim', `#${id} ${stateText(row)}`)}`,
    ...(text === null ? [] : below(text.text)),
    ...(reason === null ? [] : below(reason)).map((line) => paint('yellow', line)),
  ];
  return `${lines.join('\n')}\n\n`;
}

function stateText({ state, text, dueAtUs }: SummaryRow): string {
  if (state === 'waiting') return `waiting, due ${shortDateUs(dueAtUs ?? 0)} UTC`;
  if (text === null) return 'no text';
  return text.model === null ? 'from the template' : `by ${printable(text.model)}`;
}
