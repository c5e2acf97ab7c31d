/** `earshot maintain`: one round of maintenance, as `start` does it by itself every few hours. */
import type { MaintenanceResult } from '../../admin/maintain.ts';
import { noteText } from '../../admin/review.ts';
import { loadAccountConfig } from '../../config/config.ts';
import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/text.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand, type Parts, withParts } from '../command.ts';
import type { Io } from '../io.ts';
import { painter, writeForeign, writeOut } from '../output.ts';

const done = { resume: 'resumed', recreate: 'made anew', finish: 'finished' } as const;

export const maintainCommand = defineCommand('maintain', {
  description: 'Keep what was registered: resume and recreate what the catalogue stopped.',
  flags: (command) =>
    command
      .option('--skip-probe', 'recreate without looking at the endpoint first')
      .option('--json', 'as JSON: name status did notes failure'),
  help: `The catalogue pauses a subscription after 60 days without activity, and deletes it 365 days after
its last notification: these two are undone. What a person paused, deleted or changed is told, and
left. \`earshot start\` does the same automatically every six hours. What was done:
\`earshot subscriptions history\`.

Examples:
  $ earshot maintain
  $ earshot maintain --json`,
  run: maintainOnce,
});

interface MaintainFlags {
  json?: true;
  skipProbe?: true;
}

async function maintainOnce(io: Io, { json, skipProbe }: MaintainFlags): Promise<void> {
  // Before the account's lock is taken: faults of the configuration and of the file are reported first.
  loadAccountConfig(io);
  const inFile = await loadSubscriptionsFile(io.workingDir);
  const { maintain } = await import('../../admin/maintain.ts');
  const account = { needsCredentials: true };
  const maintained = ({ account: { world } }: Pick<Parts, 'account'>) =>
    maintain({ inFile, skipProbe: skipProbe === true }, world);
  const results = await withParts(io, ['account'], maintained, { account });
  const shown = results.map(({ news: _, notes, ...rest }) => ({
    ...rest,
    notes: notes.map(noteText),
  }));
  if (json) await writeForeign(io.stdout, `${JSON.stringify(shown, null, 2)}\n`);
  else
    for (const result of results) await writeOut(io.stdout, asCalled(resultText(result, io), io));
  if (results.length === 0) io.stderr.write('Nothing is registered, so nothing was asked.\n');
  const failed = results.filter(({ failure }) => failure !== null);
  if (failed.length > 0) {
    throw new AppError('unavailable', `${failed.length} of ${results.length} need another try.`);
  }
}

function resultText({ name, status, did, notes, failure }: MaintenanceResult, io: Io): string {
  const paint = painter(io, io.stdout);
  const mark =
    failure !== null
      ? paint('red', 'fail')
      : notes.length > 0
        ? paint('yellow', 'note')
        : paint('green', 'ok  ');
  const what = did === null ? printable(status) : `${printable(status)}, ${done[did]}`;
  const lines = [
    ...notes.map((note) => `      ${printable(noteText(note))}`),
    ...(failure === null ? [] : [`      ${printable(failure)}`]),
  ];
  return `${[`${mark}  ${paint('bold', name)}  ${what}`, ...lines].join('\n')}\n`;
}
