/** `earshot quarantine`: lists, shows, retries and drops quarantined bodies. */

import { InvalidArgumentError } from 'commander';
import { defineCommand, defineGroup, type Parts } from '../../core/cli/command.ts';
import {
  beforeOption,
  confirm,
  jsonOption,
  limitOption,
  wholeNumber,
  yesOption,
} from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { printJson, writeForeign, writeJson, writeOut } from '../../core/cli/output.ts';
import { printReport, printTable } from '../../core/cli/print-report.ts';
import { reportNextPage } from '../../core/cli/row-forms.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { durationUs } from '../../core/terms/dates.ts';
import type { QuarantineEntry, QuarantineRow, Receipt } from '../../core/terms/ports.ts';
import { toQuarantineEntryJson, toQuarantineJson } from '../../core/terms/read-models.ts';
import { counted, printable } from '../../core/terms/text.ts';
import { bodyReport, emptyQuarantine, headerLines, quarantineColumns } from './report.ts';

const listCommand = defineCommand('list', {
  description: 'List the quarantined bodies, the newest first.',
  flags: (command) =>
    command
      .addOption(limitOption({ note: 'unlimited' }))
      .addOption(beforeOption())
      .addOption(jsonOption()),
  help: `Fields of --json: id, receivedAt, subscription, source, reason, faults, bodyBytes. The source is
push or pull. The faults describe each problem of the body.

Examples:
  $ earshot quarantine list --limit 20     list the newest 20 bodies
  $ earshot quarantine list --before 12    list older bodies
  $ earshot quarantine list --json         print all fields`,
  needs: ['reader'],
  run: async (
    io,
    { limit, before: beforeId, json }: { limit?: number; before?: number; json?: true },
  ) => {
    const rows = io.reader.quarantined({ limit, beforeId });
    if (json) return void (await writeJson(io.stdout, rows, { element: toQuarantineJson }));
    const { count, last } = await printTable(io.stdout, quarantineColumns, rows);
    if (last === undefined) await printReport(io, { title: '', blocks: [emptyQuarantine] });
    else reportNextPage(io, { count, limit }, `--before ${last.id}`);
  },
});

const showCommand = defineCommand('show', {
  description: 'Show a quarantined body, its request headers and the reason for the quarantine.',
  flags: (command) =>
    command
      .argument('<id>', 'id from `earshot quarantine list`', wholeNumber(1))
      .option('--body', 'print only the original body, byte for byte')
      .addOption(jsonOption()),
  help: `Fields of --json: the fields of \`earshot quarantine list\`, then headers and bodyBase64.

Examples:
  $ earshot quarantine show 12                       print reason, headers and body
  $ earshot quarantine show 12 --body > odd.json     save the body to a file
  $ earshot quarantine show 12 --json                print all fields`,
  needs: ['reader'],
  run: async (io, { body, json }: { body?: true; json?: true }, id: number) => {
    const entry = await io.reader.quarantineEntry(id);
    if (body) await writeForeign(io.stdout, entry.body);
    else if (json) await printJson(io.stdout, toQuarantineEntryJson(entry));
    else await showEntry(io, entry);
  },
});

const retryCommand = defineCommand('retry', {
  description: 'Parse quarantined bodies again, and add valid notifications to the log.',
  flags: (command) =>
    command
      .argument('[id]', 'id from `earshot quarantine list`', wholeNumber(1))
      .option('--all', 'select all (every quarantined body)'),
  help: `Use the command after an upgrade of earshot. A body that is stored is removed from the quarantine; one
that is still invalid stays.

Exit codes: 0 done, 1 failed or a body is still invalid, 2 wrong usage or configuration.

Examples:
  $ earshot quarantine retry 12        retry one body
  $ earshot quarantine retry --all     retry all bodies
  $ earshot quarantine list            show the remaining bodies`,
  needs: ['store'],
  check: ({ all }: { all?: true }, _, id: number | undefined) => {
    if ((id === undefined) !== (all === undefined)) return;
    throw new AppError('usage', 'Use one id or --all: `earshot quarantine retry 12`');
  },
  run: async ({ store, stdout }, _, id: number | undefined) => {
    const ids = id === undefined ? [] : [id];
    if (id === undefined) {
      for await (const row of store.quarantined({})) ids.push(row.id);
    }
    let invalid = 0;
    for (const each of ids) {
      const receipt = await store.retry(each);
      if (receipt.outcome === 'rejected') invalid += 1;
      await writeOut(stdout, `${each}  ${resultText(receipt)}\n`);
    }
    if (invalid > 0) {
      throw new AppError(
        'invalid',
        `${invalid} of ${counted(ids.length, 'body', 'bodies')} still invalid and in the quarantine.`,
      );
    }
  },
});

interface DropFlags {
  olderThan?: number;
  all?: true;
  yes?: true;
}

const dropCommand = defineCommand('drop', {
  description: 'Delete quarantined bodies permanently.',
  flags: (command, io) => {
    const age = (text: string) => {
      const backUs = durationUs(text);
      if (backUs !== null) return io.nowUs() - backUs;
      throw new InvalidArgumentError('Use an age such as 12h or 30d.');
    };
    const addId = (text: string, ids: number[] = []) => [...ids, wholeNumber(1)(text)];
    return command
      .argument('[ids...]', 'ids from `earshot quarantine list`', addId)
      .option('--older-than <age>', 'minimum age of the deleted data (such as 12h or 30d)', age)
      .option('--all', 'select all (every quarantined body)')
      .addOption(yesOption());
  },
  help: `The command shows the bodies and asks for confirmation. If a body is packed with other bodies, its
disk space becomes free when \`earshot prune\` deletes all of these bodies.

Examples:
  $ earshot quarantine drop 12 13                      delete two bodies
  $ earshot quarantine drop --older-than 30d --yes     delete old bodies without a prompt
  $ earshot quarantine drop --all                      delete all bodies after a prompt`,
  needs: ['store'],
  check: ({ olderThan, all }: DropFlags, _, ids: number[] = []) => {
    const choices = [ids.length > 0, olderThan !== undefined, all === true];
    if (choices.filter(Boolean).length === 1) return;
    throw new AppError('usage', 'Use ids, --older-than or --all: `earshot quarantine drop 12`');
  },
  run: drop,
});

export const quarantineCommand = defineGroup('quarantine', {
  description: 'List, show, retry or drop quarantined bodies.',
  help: `The quarantine stores request bodies that are not valid notifications.

Examples:
  $ earshot quarantine                           list quarantined bodies
  $ earshot quarantine show 12                   show one quarantined body
  $ earshot quarantine retry --all               parse all bodies again
  $ earshot quarantine drop --older-than 30d     delete old bodies`,
  usual: listCommand,
  commands: [showCommand, retryCommand, dropCommand],
});

async function drop(
  io: Io & Pick<Parts, 'store'>,
  { olderThan = Number.POSITIVE_INFINITY, yes }: DropFlags,
  ids: readonly number[] = [],
): Promise<void> {
  const { store, stderr } = io;
  const rows: QuarantineRow[] = [];
  for await (const row of store.quarantined({})) {
    const isChosen = ids.length > 0 ? ids.includes(row.id) : row.receivedAtUs < olderThan;
    if (isChosen) rows.push(row);
  }
  const missing = ids.filter((id) => !rows.some((row) => row.id === id));
  if (missing.length > 0) {
    throw new AppError(
      'not_found',
      `Not in the quarantine: ${missing.join(', ')}. Nothing was changed.`,
      { advice: 'For the ids: `earshot quarantine list`.' },
    );
  }
  if (rows.length === 0) return void stderr.write('Nothing to drop.\n');
  const shown = rows.slice(0, shownMax);
  await printTable(stderr, quarantineColumns, shown);
  if (rows.length > shown.length) stderr.write(`… and ${rows.length - shown.length} more\n`);
  await confirm(io, `Delete ${counted(rows.length, 'body', 'bodies')} permanently?`, { yes });
  const dropped = await store.drop(rows.map(({ id }) => id));
  stderr.write(`Dropped ${counted(dropped, 'body', 'bodies')}.\n`);
}

/** Maximum rows of the preview. */
const shownMax = 20;

function resultText(receipt: Receipt): string {
  if (receipt.outcome === 'stored') return `stored ${receipt.stored}`;
  if (receipt.outcome === 'duplicate') return 'duplicate';
  return `still quarantined: ${receipt.faults[0]?.message ?? 'unreadable'}`;
}

/** Prints the report of a body, then its headers and its content. */
async function showEntry(io: Io, entry: QuarantineEntry): Promise<void> {
  const pairs = headerLines(entry).map((line) => `  ${line}`);
  await printReport(io, bodyReport(entry));
  const text = ['', 'headers', ...pairs, 'body', new TextDecoder().decode(entry.body), ''];
  await writeOut(io.stdout, text.join('\n').split('\n').map(printable).join('\n'));
}
