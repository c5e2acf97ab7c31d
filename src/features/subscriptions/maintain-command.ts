/** `earshot maintain`: runs the maintenance of the subscriptions once. */
import { type MaintenanceResult, noteText } from '../../admin/maintain.ts';
import { defineCommand, withParts } from '../../core/cli/command.ts';
import { jsonOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { asCalled, painter, printJson, writeOut } from '../../core/cli/output.ts';
import { loadSubscriptionsFile } from '../../core/config/subscriptions-file.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { printable } from '../../core/terms/text.ts';

const actions = { resume: 'resumed', recreate: 'recreated', finish: 'finished' } as const;

interface MaintainFlags {
  json?: true;
  skipProbe?: boolean;
}

export const maintainCommand = defineCommand('maintain', {
  description: 'Resume or recreate subscriptions that the catalogue has paused or deleted.',
  flags: (command) =>
    command.option('--skip-probe', 'skip the check of the endpoint').addOption(jsonOption()),
  help: `The catalogue pauses a subscription after 60 days without a push, a creation or a resumption. The
catalogue deletes a subscription 365 days after the last notification. The command resumes paused
subscriptions and recreates deleted subscriptions. If a user has paused, deleted or changed a
subscription, then the command only reports the change. The receiver runs the same maintenance every
six hours. \`earshot subscriptions history\` lists the changes.

Fields of --json: name, status, did, notes, failure.
  status   status before the maintenance; gone if the catalogue has deleted the subscription
  did      action: resume, recreate, or finish (an interrupted change); null without an action
  failure  error of the action; null without an error

Examples:
  $ earshot maintain                  check and repair all subscriptions
  $ earshot maintain --json           print JSON
  $ earshot maintain --skip-probe     do not check the endpoint first`,
  run: async (io: Io, { json, skipProbe = false }: MaintainFlags) => {
    const inFile = await loadSubscriptionsFile(io);
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
  const shown = results.map(({ hasNewNotes: _, notes, ...rest }) => ({
    ...rest,
    notes: notes.map(noteText),
  }));
  if (json) await printJson(io.stdout, shown);
  else
    for (const result of results) await writeOut(io.stdout, asCalled(resultText(result, io), io));
  if (results.length === 0) io.stderr.write('No registered subscriptions.\n');
  const failed = results.filter(({ failure }) => failure !== null);
  if (failed.length === 0) return;
  throw new AppError(
    'unavailable',
    `Maintenance failed for ${failed.length} of ${results.length} subscriptions. Run \`earshot maintain\` again.`,
  );
}

function resultText({ name, status, did, notes, failure }: MaintenanceResult, io: Io): string {
  const paint = painter(io, io.stdout);
  const mark =
    failure !== null
      ? paint('red', 'fail')
      : notes.length > 0
        ? paint('yellow', 'note')
        : paint('green', 'ok  ');
  const what = did === null ? printable(status) : `${printable(status)}, ${actions[did]}`;
  const details = [...notes.map(noteText), ...(failure === null ? [] : [failure])];
  const lines = details.map((detail) => `      ${printable(detail)}\n`).join('');
  return `${mark}  ${paint('bold', name)}  ${what}\n${lines}`;
}
