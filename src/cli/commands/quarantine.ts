/** `earshot quarantine`: bodies that were no notifications, and what can be done about them. */
import { InvalidArgumentError } from 'commander';
import { AppError } from '../../domain/app-error.ts';
import { formatDateUs, shortDateUs } from '../../domain/dates.ts';
import type { QuarantineEntry, QuarantineRow, Receipt } from '../../domain/ports.ts';
import { printable } from '../../domain/text.ts';
import { defineCommand, defineGroup, type Parts } from '../command.ts';
import { confirm, lengthOfTimeUs, limitOption, wholeNumber, yesOption } from '../flags.ts';
import type { Io } from '../io.ts';
import {
  type Column,
  counted,
  isoTime,
  printTable,
  writeForeign,
  writeJson,
  writeOut,
} from '../output.ts';

const listCommand = defineCommand('list', {
  description: 'List what is held, newest first.',
  flags: (command) =>
    command
      .option('--released', 'those too that were read at a later try')
      .addOption(limitOption())
      .option('--json', 'as JSON: id receivedAt subscription reason faults bodyBytes releasedAt'),
  help: `Example:
  $ earshot quarantine list --limit 20`,
  needs: ['reader'],
  run: async (
    { reader, stdout, stderr },
    { released = false, limit, json }: { released?: boolean; limit?: number; json?: true },
  ) => {
    const rows = reader.quarantined({ released, ...(limit === undefined ? {} : { limit }) });
    if (json) await writeJson(stdout, rows, { element: toOutput });
    else if ((await printTable(stdout, columns, rows)) === 0) {
      stderr.write('Nothing is held in quarantine.\n');
    }
  },
});

const showCommand = defineCommand('show', {
  description: 'Show one entry: why it is held, its headers, its body.',
  flags: (command) =>
    command
      .argument('<id>', 'from `earshot quarantine list`', wholeNumber(1))
      .option('--body', 'only the body, byte by byte as it came')
      .option('--json', 'as JSON: the fields of list, headers, and the body as base64'),
  help: `Example:
  $ earshot quarantine show 12 --body > odd.json`,
  needs: ['reader'],
  run: async (
    { reader, stdout },
    { body, json = false }: { body?: true; json?: boolean },
    id: number,
  ) => {
    const entry = await reader.quarantineEntry(id);
    await writeForeign(stdout, body ? entry.body : shown(entry, json));
  },
});

const retryCommand = defineCommand('retry', {
  description: 'Read held bodies again; those that are notifications now go to the log.',
  flags: (command) =>
    command
      .argument('[id]', 'one entry', wholeNumber(1))
      .option('--all', 'everything that is held'),
  help: `Useful after an upgrade that can read more. A body that still cannot be read stays where it is.

Example:
  $ earshot quarantine retry 12`,
  needs: ['store'],
  check: ({ all }: { all?: true }, _, id: number | undefined) => {
    if ((id === undefined) !== (all === undefined)) return;
    throw new AppError('usage', 'Name one entry, or use --all: `earshot quarantine retry 12`');
  },
  run: async ({ store, stdout, nowUs }, _, id: number | undefined) => {
    const ids = id === undefined ? [] : [id];
    if (id === undefined) {
      for await (const row of store.quarantined({ released: false })) ids.push(row.id);
    }
    let held = 0;
    for (const each of ids) {
      const receipt = await store.retry(each, nowUs());
      if (receipt.outcome === 'rejected') held += 1;
      await writeOut(stdout, `${each}  ${told(receipt)}\n`);
    }
    if (held > 0) {
      throw new AppError('invalid', `${held} of ${ids.length} cannot be read yet and stay held.`);
    }
  },
});

interface DropFlags {
  olderThan?: number;
  all?: true;
  yes?: true;
}

const dropCommand = defineCommand('drop', {
  description: 'Remove held bodies permanently. Shows which, and asks.',
  flags: (command, io) => {
    const age = (text: string) => {
      const backUs = lengthOfTimeUs(text);
      if (backUs !== null) return io.nowUs() - backUs;
      throw new InvalidArgumentError('Use an age such as 12h or 30d.');
    };
    const addId = (text: string, ids: number[] = []) => [...ids, wholeNumber(1)(text)];
    return command
      .argument('[ids...]', 'entries from `earshot quarantine list`', addId)
      .option('--older-than <age>', 'those received longer ago: 12h, 30d', age)
      .option('--all', 'everything that is held')
      .addOption(yesOption());
  },
  help: `Entries that were read by a retry are not held; \`earshot prune\` removes them. The space in the file
is used again once older notifications are pruned.

Examples:
  $ earshot quarantine drop 12 13
  $ earshot quarantine drop --older-than 30d --yes`,
  needs: ['store'],
  check: ({ olderThan, all }: DropFlags, _, ids: number[] = []) => {
    const choices = [ids.length > 0, olderThan !== undefined, all === true];
    if (choices.filter(Boolean).length === 1) return;
    throw new AppError(
      'usage',
      'Name entries, or use --older-than or --all: `earshot quarantine drop 12`',
    );
  },
  run: drop,
});

export const quarantineCommand = defineGroup('quarantine', {
  description: 'Look at bodies that could not be read as notifications, and read them again.',
  help: `Examples:
  $ earshot quarantine
  $ earshot quarantine show 12
  $ earshot quarantine retry --all
  $ earshot quarantine drop --older-than 30d`,
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
  for await (const row of store.quarantined({ released: false })) {
    const isChosen = ids.length > 0 ? ids.includes(row.id) : row.receivedAtUs < olderThan;
    if (isChosen) rows.push(row);
  }
  const missing = ids.filter((id) => !rows.some((row) => row.id === id));
  if (missing.length > 0) {
    throw new AppError(
      'not_found',
      `Not held in quarantine: ${missing.join(', ')}. Nothing was changed.`,
      { advice: '`earshot quarantine list` shows what is.' },
    );
  }
  if (rows.length === 0) return void stderr.write('Nothing to drop.\n');
  const shown = rows.slice(0, shownMax);
  await printTable(stderr, columns, shown);
  if (rows.length > shown.length) stderr.write(`… and ${rows.length - shown.length} more\n`);
  await confirm(io, `Remove ${counted(rows.length, 'body', 'bodies')} permanently?`, { yes });
  const dropped = await store.drop(rows.map(({ id }) => id));
  stderr.write(`${dropped} dropped.\n`);
}

/** Rows of a preview. */
const shownMax = 20;

function told(receipt: Receipt): string {
  if (receipt.outcome === 'stored') return `stored ${receipt.stored}`;
  if (receipt.outcome === 'duplicate') return 'known already';
  return `still held: ${receipt.faults[0]?.message ?? 'it cannot be read'}`;
}

const columns: readonly Column<QuarantineRow>[] = [
  { title: 'id', value: (row) => String(row.id), align: 'right' },
  { title: 'received (UTC)', value: (row) => shortDateUs(row.receivedAtUs, 'second') },
  { title: 'bytes', value: (row) => String(row.bodyBytes), align: 'right' },
  { title: 'subscription', value: (row) => row.subscription ?? '-' },
  { title: 'reason', value: (row) => row.faults[0]?.message ?? row.reason, flexible: true },
];

function toOutput({ receivedAtUs, releasedAtUs, ...row }: QuarantineRow) {
  return {
    id: row.id,
    receivedAt: formatDateUs(receivedAtUs),
    subscription: row.subscription,
    reason: row.reason,
    faults: row.faults,
    bodyBytes: row.bodyBytes,
    releasedAt: isoTime(releasedAtUs),
  };
}

function shown(entry: QuarantineEntry, json: boolean): string {
  const { headers, body } = entry;
  const fields = toOutput(entry);
  if (json) {
    const bodyBase64 = Buffer.from(body).toString('base64');
    return `${JSON.stringify({ ...fields, headers, bodyBase64 }, null, 2)}\n`;
  }
  const pairs = headers.flatMap((name, i) =>
    i % 2 === 0 ? [`  ${printable(`${name}: ${headers[i + 1] ?? ''}`)}`] : [],
  );
  const text = new TextDecoder().decode(body).split('\n').map(printable).join('\n');
  return [
    `entry         ${fields.id}`,
    `received      ${fields.receivedAt}`,
    `subscription  ${fields.subscription ?? '-'}`,
    `released      ${fields.releasedAt ?? 'no, it is held'}`,
    ...fields.faults.map(({ message }) => `fault         ${printable(message)}`),
    'headers',
    ...pairs,
    `body (${fields.bodyBytes} bytes)`,
    text,
    '',
  ].join('\n');
}
