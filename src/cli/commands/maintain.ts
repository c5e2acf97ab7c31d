/** `earshot maintain`: one round of maintenance, as `start` does it automatically every few hours. */
import type { MaintenanceResult } from '../../admin/maintain.ts';
import { noteText } from '../../admin/review.ts';
import { loadAccountConfig } from '../../config/config.ts';
import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/text.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand, withParts } from '../command.ts';
import type { Io } from '../io.ts';
import { painter, printJson, writeOut } from '../output.ts';

const done = { resume: 'resumed', recreate: 'made anew', finish: 'finished' } as const;

interface MaintainFlags {
  json?: true;
  skipProbe?: boolean;
}

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
  run: async (io: Io, { json, skipProbe = false }: MaintainFlags) => {
    loadAccountConfig(io);
    const inFile = await loadSubscriptionsFile(io.workingDir);
    const { maintain } = await import('../../admin/maintain.ts');
    const results = await withParts(
      io,
      ['account'],
      ({ account }) => maintain({ inFile, skipProbe }, account),
      { account: { needsCredentials: true } },
    );
    await report(results, json, io);
  },
});

async function report(results: MaintenanceResult[], json: true | undefined, io: Io) {
  const shown = results.map(({ news: _, notes, ...rest }) => ({
    ...rest,
    notes: notes.map(noteText),
  }));
  if (json) await printJson(io.stdout, shown);
  else
    for (const result of results) await writeOut(io.stdout, asCalled(resultText(result, io), io));
  if (results.length === 0) io.stderr.write('Nothing is registered, so nothing was asked.\n');
  const failed = results.filter(({ failure }) => failure !== null);
  if (failed.length === 0) return;
  throw new AppError('unavailable', `${failed.length} of ${results.length} need another try.`);
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
  const details = [...notes.map(noteText), ...(failure === null ? [] : [failure])];
  const lines = details.map((detail) => `      ${printable(detail)}\n`).join('');
  return `${mark}  ${paint('bold', name)}  ${what}\n${lines}`;
}
