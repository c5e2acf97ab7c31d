/** `earshot summarize`: has a language model tell, in short texts, what arrived. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { AppError } from '../../domain/app-error.ts';
import { digestWindows } from '../../domain/summaries.ts';
import { defineCommand } from '../command.ts';
import { limitOption, readTime, sinceOption, untilOption } from '../flags.ts';
import type { SummarizeFlags } from '../summaries/run-summarize.ts';

export const summarizeCommand = defineCommand('summarize', {
  description: 'Write the summaries that are due, or those that are asked for here.',
  flags: (command, io) => addFlags(command, readTime(io)),
  help: `Waits when the inference service asks for a pause of up to 2 minutes: 429 or
503 with Retry-After.

Without --each or --digest, does what the rules ask for: \`summary\` in earshot.config.ts, or
EARSHOT_SUMMARY. For --each, --since is 24h by default; with --filter alone, the time does not
count.

--digest tells of whole hours, days or weeks (UTC; weeks begin on Monday) that are over: all that
--since to --until touches, without --since the last one. The one that still lasts is left out; only
where nothing came in the others, it is told of up to now.

A text that is there already for the same facts, model and prompt is not asked for again. Together
with a receiver that runs, no more is sent than EARSHOT_SUMMARY_REQUESTS_PER_HOUR,
…_REQUESTS_PER_DAY and …_TOKENS_PER_DAY allow: what is left waits. Without a model
(EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL) the texts are made of the facts alone.

--retry with ids also takes texts that are not verified. What --drop dropped, it tries again. A text
that is being asked for is not dropped, and a rule that is not turned off goes on asking for new
ones.

--json: kind productId productName text model verified createdAt error, and more (query summaries
--help); with --dry-run kind productId productName tokens request. --dry-run needs no model. Exit
code 1 when a text failed, or the service cannot be used; not for what waits for the budget.

Examples:
  $ earshot summarize                                          what is due by the rules
  $ earshot summarize --each --since 2h --limit 20
  $ earshot summarize --digest day --since 7d
  $ earshot summarize --each --filter "Collection/Name eq 'SENTINEL-1'" --dry-run
  $ earshot summarize --retry all
  $ earshot summarize --drop all                               after a rule was turned off
  $ earshot summarize --print-prompt`,
  check: (flags: SummarizeFlags) => refuseLooseFlags(flags),
  // It loads maps and the worker: not for `--help`.
  run: async (io, flags: SummarizeFlags) =>
    (await import('../summaries/run-summarize.ts')).summarize(io, flags),
});

function addFlags(command: Command, time: ReturnType<typeof readTime>): Command {
  return command
    .configureOutput({ outputError: (text, write) => write(withIdsAdvice(text)) })
    .option('--each', 'one text for each product, whatever the rules say')
    .addOption(
      new Option('--digest <window>', 'one text for each window, whatever the rules say')
        .choices(digestWindows)
        .conflicts('each'),
    )
    .addOption(sinceOption(time, 'received'))
    .addOption(untilOption(time, 'received'))
    .option('--filter <expression>', 'only products that match this $filter expression')
    .option('--subscription <name>', 'only what came for this subscription')
    .addOption(limitOption({ of: 'texts', note: 'the newest first' }))
    .option('--dry-run', 'print the requests and what they would cost; send and change nothing')
    .addOption(
      new Option('--retry <all|ids>', 'try what failed or was dropped again; ids with commas')
        .argParser(readIds)
        .conflicts(['each', 'digest', 'dryRun', 'drop']),
    )
    .addOption(
      new Option('--drop <all|ids>', 'write no text for what waits, and do nothing else')
        .argParser(readIds)
        .conflicts(['each', 'digest', 'dryRun', 'limit']),
    )
    .option('--print-prompt', 'print what the model is told, and nothing else')
    .option('--json', 'as JSON lines: the rows of query summaries, or the requests');
}

const idsAdvice = 'Use all, or ids as query summaries shows them: 12,15.';

/** A flag without its ids is refused before they are read. */
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
    `--${loose.join(' and --')}: say what is to be written, --each or --digest day. Without them, the rules say it.`,
  );
}
