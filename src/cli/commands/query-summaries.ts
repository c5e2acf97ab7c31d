/** `earshot query summaries`: what was written about what arrived. */
import { Command, Option } from 'commander';
import { summaryKinds, summaryStates } from '../../domain/summaries.ts';
import type { Io } from '../io.ts';
import { outputForms } from '../notification-output.ts';
import { wholeNumber } from '../number-argument.ts';
import { limitOption, outputOption, sinceOption, untilOption } from '../shared-flags.ts';
import { type QuerySummariesFlags, summaryRowsDefault } from '../summaries/summary-flags.ts';
import { readTime } from '../time-argument.ts';

export function querySummariesCommand(io: Io): Command {
  const time = readTime(io);
  return new Command('summaries')
    .description('Show the texts about what arrived, and why one is missing or put off.')
    .addOption(new Option('--kind <kind>', 'product or digest').choices(summaryKinds))
    .addOption(new Option('--state <state>', 'how far it is').choices(summaryStates))
    .option('--product-id <id>', 'the text about this product')
    .option('--subscription <name>', 'called for by this subscription')
    .option('--unverified', 'only texts that state something the facts do not have')
    .addOption(sinceOption(time, 'requested'))
    .addOption(untilOption(time, 'requested'))
    .option('--before <id>', 'only earlier ones than this id', wholeNumber(1))
    .addOption(limitOption({ note: `table: ${summaryRowsDefault}, else all` }))
    .addOption(outputOption(outputForms))
    .option('--json', 'short for --output json')
    .addHelpText(
      'after',
      `
Newest first; #12 is the id. Fields of the JSON and CSV rows: kind productId productName text model
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
    )
    .action(async (flags: QuerySummariesFlags) => {
      const { querySummaries } = await import('../summaries/query-summaries.ts');
      await querySummaries(io, flags);
    });
}
