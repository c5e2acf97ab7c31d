/** `earshot summarize`: writes summaries with a language model. */
import { Option } from 'commander';
import { defineCommand } from '../../core/cli/command.ts';
import { addSpan, dryRunOption, jsonOption, limitOption } from '../../core/cli/flags.ts';
import { AppError } from '../../core/terms/app-error.ts';
import type { SummarizeFlags } from './run-summarize.ts';
import { digestWindows } from './terms.ts';

export const summarizeCommand = defineCommand('summarize', {
  description: 'Write summaries of products, or digests of periods.',
  flags: (command, io) => {
    command
      .option('--each', 'write one summary per product')
      .addOption(
        new Option('--digest <window>', 'write one digest per period')
          .choices(digestWindows)
          .conflicts('each'),
      );
    return addSpan(command, io, 'time of the first receipt')
      .option('--filter <expression>', '$filter expression (selects products)')
      .option('--subscription <name>', 'subscription name (default: all)')
      .addOption(limitOption({ note: 'unlimited; a row is a summary to write, the newest first' }))
      .addOption(dryRunOption())
      .addOption(jsonOption());
  },
  help: `The receiver writes the summaries of new products by the rules in earshot.config.ts or EARSHOT_SUMMARY.
This command writes those of earlier products, independently of the rules.

The language model (EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL) gets the facts about the
product or the period, and writes sentences with their names in braces. earshot inserts the values,
so all numbers, dates and names are facts. An answer in another form is refused. After two refused
answers, and without a model, the text comes from a template. If the facts are unchanged, nothing
is requested.

EARSHOT_SUMMARY_REQUESTS_PER_DAY and EARSHOT_SUMMARY_TOKENS_PER_DAY limit the requests of this
command and the receiver together. At a limit, the command ends. The same command continues later.

  --each    The default of --since is 24h. With --filter, and without --since and --until, products
            of any time are selected. Deleted products are not selected.
  --digest  The periods are complete hours, days or weeks in UTC. Weeks start on Monday. The default
            is the last complete period. Deleted products are included.

--json prints an object per line with the fields of \`earshot query summaries\`. With --dry-run, the
fields are kind, productId, productName, tokens and request. tokens is an estimate.

Exit codes: 0 done or stopped at a limit, 1 the service did not answer, 2 wrong usage or
configuration.

Examples:
  $ earshot summarize --each --since 2h --limit 20    summarize the newest 20 products
  $ earshot summarize --digest day --since 7d         write one digest for each day
  $ earshot summarize --each --limit 1 --dry-run      show a request`,
  check: ({ each, digest }: SummarizeFlags) => {
    if (each === undefined && digest === undefined)
      throw new AppError('usage', 'Add --each or --digest day.');
  },
  // Loaded on demand: maps and the worker are large, and `--help` does not need them.
  run: async (io, flags: SummarizeFlags) =>
    (await import('./run-summarize.ts')).summarize(io, flags),
});
