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
  description: 'Write the summaries that are due, or those selected by flags.',
  flags: (command, io) => addFlags(command, readTime(io)),
  help: `Without --each or --digest, writes the summaries of the rules (\`summary\` in earshot.config.ts, or
EARSHOT_SUMMARY). Without a model (EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL), the text
is generated from the fact sheet. An existing text for the same facts, model and prompt is reused.
EARSHOT_SUMMARY_REQUESTS_PER_HOUR, …_REQUESTS_PER_DAY and …_TOKENS_PER_DAY limit the requests,
together with those of the receiver; other summaries wait. Retry-After is obeyed up to 2 minutes.

--each: default of --since is 24h; with --filter alone, any time. --digest: complete hours, days or
weeks (UTC, from Monday) within --since and --until; without --since, the last one. --retry: failed
and dropped summaries, or unverified ones by id. --drop: requests in progress are not dropped.

--json prints JSON lines with the fields of \`earshot query summaries\`; with --dry-run: kind
productId productName tokens request.

Exit codes: 0 done or waiting for the budget, 1 a summary failed, 2 wrong usage or configuration.

Examples:
  $ earshot summarize                                   summaries of the rules
  $ earshot summarize --each --since 2h --limit 20      one for each of the newest 20 products
  $ earshot summarize --digest day --since 7d           one for each day
  $ earshot summarize --retry all                       retry failed and dropped ones`,
  check: (flags: SummarizeFlags) => refuseLooseFlags(flags),
  // Loaded on demand: maps and the worker are large, and `--help` does not need them.
  run: async (io, flags: SummarizeFlags) =>
    (await import('../summaries/run-summarize.ts')).summarize(io, flags),
});

function addFlags(command: Command, time: ReturnType<typeof readTime>): Command {
  return command
    .configureOutput({ outputError: (text, write) => write(withIdsAdvice(text)) })
    .option('--each', 'write one summary per product, independent of the rules')
    .addOption(
      new Option('--digest <window>', 'write one digest per window, independent of the rules')
        .choices(digestWindows)
        .conflicts('each'),
    )
    .addOption(sinceOption(time, 'received'))
    .addOption(untilOption(time, 'received'))
    .option('--filter <expression>', '$filter expression (selects products)')
    .option('--subscription <name>', 'subscription name (default: all)')
    .addOption(limitOption({ note: 'unlimited; newest first' }))
    .addOption(dryRunOption())
    .addOption(
      new Option('--retry <all|ids>', 'retry failed and dropped summaries (comma-separated ids)')
        .argParser(readIds)
        .conflicts(['each', 'digest', 'dryRun', 'drop']),
    )
    .addOption(
      new Option('--drop <all|ids>', 'drop waiting summaries (comma-separated ids)')
        .argParser(readIds)
        .conflicts(['each', 'digest', 'dryRun', 'limit']),
    )
    .option('--print-prompt', 'print only the prompt of the model')
    .addOption(jsonOption());
}

const idsAdvice = 'Use all, or ids from `earshot query summaries`: 12,15.';

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
    `--${loose.join(' and --')}: add --each or --digest day. Without them, the rules select the summaries.`,
  );
}
