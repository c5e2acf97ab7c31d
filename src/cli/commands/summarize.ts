/** `earshot summarize`: writes summaries with a language model. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { AppError } from '../../domain/app-error.ts';
import { digestWindows } from '../../domain/summaries.ts';
import { defineCommand } from '../command.ts';
import {
  dryRunOption,
  jsonOption,
  limitOption,
  readTime,
  sinceOption,
  untilOption,
} from '../flags.ts';
import type { SummarizeFlags } from '../summaries/run-summarize.ts';

export const summarizeCommand = defineCommand('summarize', {
  description: 'Write the summaries that the configuration or the flags select.',
  flags: (command, io) => addFlags(command, readTime(io)),
  help: `The rules are the options \`summary\` of the subscriptions in earshot.config.ts, or EARSHOT_SUMMARY.
Without --each and --digest, the command writes the summaries that the rules request. To use a
language model, set EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL. Without a model, earshot
generates the text from the facts about the product. If facts, model and prompt are unchanged,
then the command uses the existing text.

The variables EARSHOT_SUMMARY_REQUESTS_PER_HOUR, …_REQUESTS_PER_DAY and …_TOKENS_PER_DAY limit the
total requests of this command and the receiver. At a limit, the command ends, and the remaining
summaries stay in the queue. If the inference service sends Retry-After, then the command waits up
to 2 minutes.

  --each    The default of --since is 24h. If --filter is set, but not --since, --until or
            --subscription, then the command selects products of any time.
  --digest  The time spans are complete hours, days or weeks in UTC. Weeks start on Monday.
            Without --since, the command writes only the last time span.
  --retry   "all" selects failed and dropped summaries. Ids can also select summaries with a claim
            that the facts do not confirm.
  --drop    A summary whose request is in progress is not dropped.

--json prints an object per line with the fields of \`earshot query summaries\`. With --dry-run, the
fields are kind, productId, productName, tokens and request. tokens is an estimate.

Exit codes: 0 done or stopped at a limit, 1 a summary failed, 2 wrong usage or configuration.

Examples:
  $ earshot summarize                                   write the summaries that the rules request
  $ earshot summarize --each --since 2h --limit 20      write summaries of the newest 20 products
  $ earshot summarize --digest day --since 7d           write one digest for each day
  $ earshot summarize --retry all                       retry failed and dropped summaries`,
  check: (flags: SummarizeFlags) => refuseLooseFlags(flags),
  // Loaded on demand: maps and the worker are large, and `--help` does not need them.
  run: async (io, flags: SummarizeFlags) =>
    (await import('../summaries/run-summarize.ts')).summarize(io, flags),
});

function addFlags(command: Command, time: ReturnType<typeof readTime>): Command {
  return command
    .configureOutput({ outputError: (text, write) => write(withIdsAdvice(text)) })
    .option('--each', 'write one summary per product and ignore the configured rules')
    .addOption(
      new Option(
        '--digest <window>',
        'write one digest per time span and ignore the configured rules',
      )
        .choices(digestWindows)
        .conflicts('each'),
    )
    .addOption(sinceOption(time, 'time of receipt'))
    .addOption(untilOption(time))
    .option('--filter <expression>', '$filter expression (selects products)')
    .option('--subscription <name>', 'subscription name (default: all)')
    .addOption(limitOption({ note: 'unlimited; a row is a summary to write, the newest first' }))
    .addOption(dryRunOption())
    .addOption(
      new Option('--retry <all|ids>', 'summaries to retry (all, or comma-separated ids)')
        .argParser(readIds)
        .conflicts(['each', 'digest', 'dryRun', 'drop']),
    )
    .addOption(
      new Option('--drop <all|ids>', 'waiting summaries to drop (all, or comma-separated ids)')
        .argParser(readIds)
        .conflicts(['each', 'digest', 'dryRun', 'limit']),
    )
    .option('--print-prompt', 'print only the instructions for the model')
    .addOption(jsonOption());
}

const idsAdvice = 'Use "all", or ids from `earshot query summaries`: 12,15.';

/** Adds advice to commander's error about missing ids. */
function withIdsAdvice(error: string): string {
  return error.replace(/(--(?:retry|drop) .* argument missing)\n/, `$1. ${idsAdvice}\n`);
}

function readIds(text: string): number[] | 'all' {
  if (text === 'all') return text;
  const ids = text.split(',').map(Number);
  if (ids.every((id) => Number.isSafeInteger(id) && id > 0)) return ids;
  throw new InvalidArgumentError(idsAdvice);
}

function refuseLooseFlags(flags: SummarizeFlags): void {
  const { printPrompt, each, digest } = flags;
  if (printPrompt || each !== undefined || digest !== undefined) return;
  const loose = (['since', 'until', 'filter', 'subscription'] as const).filter(
    (name) => flags[name] !== undefined,
  );
  if (loose.length === 0) return;
  throw new AppError(
    'usage',
    `To use --${loose.join(' and --')}, add --each or --digest day. Otherwise the rules select the summaries.`,
  );
}
