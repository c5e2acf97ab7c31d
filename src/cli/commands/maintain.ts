/** `earshot maintain`: one round of maintenance, as `start` does it by itself every few hours. */

import { Command } from 'commander';
import type { MaintenanceResult } from '../../admin/maintenance/maintain.ts';
import { noteText } from '../../admin/maintenance/review.ts';
import { readCompleteAccountConfig } from '../../config/account-config.ts';
import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import { asCalled } from '../called-as.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { writeForeign, writeOut } from '../write-out.ts';

const done = { resume: 'resumed', recreate: 'made anew', finish: 'finished' } as const;

export function maintainCommand(io: Io): Command {
  return new Command('maintain')
    .description('Keep what was registered: resume and recreate what the catalogue stopped.')
    .option('--skip-probe', 'recreate without looking at the endpoint first')
    .option('--json', 'as JSON: name status did notes failure')
    .addHelpText(
      'after',
      `
The catalogue pauses a subscription after 60 days without activity, and deletes it 365 days after
its last notification: these two are undone. What a person paused, deleted or changed is told, and
left. \`earshot start\` does the same automatically every six hours. What was done:
\`earshot subscriptions history\`.

Examples:
  $ earshot maintain
  $ earshot maintain --json`,
    )
    .action((flags: MaintainFlags) => maintainOnce(io, flags));
}

interface MaintainFlags {
  json?: true;
  skipProbe?: true;
}

async function maintainOnce(io: Io, { json, skipProbe }: MaintainFlags): Promise<void> {
  const config = readCompleteAccountConfig(io);
  const inFile = await loadSubscriptionsFile(io.workingDir);
  const [{ openAccount }, { maintain }] = await Promise.all([
    import('../account.ts'),
    import('../../admin/maintenance/maintain.ts'),
  ]);
  const { world, close } = await openAccount(config, io, {
    needsCredentials: true,
  });
  try {
    const results = await maintain({ inFile, skipProbe: skipProbe === true }, world);
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
  } finally {
    await close();
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
