/** `earshot quarantine`: bodies that were no notifications, and what can be done about them. */
import { Command, InvalidArgumentError } from 'commander';
import { readDataConfig } from '../../config/read-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { QuarantineEntry, QuarantineRow, Receipt } from '../../domain/ports.ts';
import { printable } from '../../domain/printable.ts';
import { openStore, openStoreReader } from '../../store/store.ts';
import { confirm } from '../confirm.ts';
import type { Io } from '../io.ts';
import { writeJson } from '../notification-output.ts';
import { wholeNumber } from '../number-argument.ts';
import { limitOption, yesOption } from '../shared-flags.ts';
import { counted } from '../sinks/counted.ts';
import { type Column, printTable } from '../table.ts';
import { parseTimeArgument } from '../time-argument.ts';
import { writeForeign, writeOut } from '../write-out.ts';

export function quarantineCommand(io: Io): Command {
  return new Command('quarantine')
    .description('Look at bodies that could not be read as notifications, and read them again.')
    .addHelpText(
      'after',
      `
Examples:
  $ earshot quarantine
  $ earshot quarantine show 12
  $ earshot quarantine retry --all
  $ earshot quarantine drop --older-than 30d`,
    )
    .addCommand(listCommand(io), { isDefault: true })
    .addCommand(showCommand(io))
    .addCommand(retryCommand(io))
    .addCommand(dropCommand(io));
}

function listCommand(io: Io): Command {
  return new Command('list')
    .description('List what is held, newest first.')
    .option('--released', 'those too that were read at a later try')
    .addOption(limitOption())
    .option('--json', 'as JSON: id receivedAt subscription reason faults bodyBytes releasedAt')
    .addHelpText('after', '\nExample:\n  $ earshot quarantine list --limit 20')
    .action(async (flags: { released?: true; limit?: number; json?: true }) => {
      const store = openStoreReader(readDataConfig(io).dataDir);
      try {
        const { released = false, limit } = flags;
        const rows = store.quarantined({ released, ...(limit === undefined ? {} : { limit }) });
        if (flags.json) await writeJson(io.stdout, mapped(rows));
        else if ((await printTable(io.stdout, columns, rows)) === 0) {
          io.stderr.write('Nothing is held in quarantine.\n');
        }
      } finally {
        await store.close();
      }
    });
}

function showCommand(io: Io): Command {
  return new Command('show')
    .description('Show one entry: why it is held, its headers, its body.')
    .argument('<id>', 'from `earshot quarantine list`', wholeNumber(1))
    .option('--body', 'only the body, byte by byte as it came')
    .option('--json', 'as JSON: the fields of list, headers, and the body as base64')
    .addHelpText('after', '\nExample:\n  $ earshot quarantine show 12 --body > odd.json')
    .action(async (id: number, flags: { body?: true; json?: true }) => {
      const store = openStoreReader(readDataConfig(io).dataDir);
      try {
        const entry = await store.quarantineEntry(id);
        await writeForeign(io.stdout, flags.body ? entry.body : shown(entry, flags.json === true));
      } finally {
        await store.close();
      }
    });
}

function retryCommand(io: Io): Command {
  return new Command('retry')
    .description('Read held bodies again; those that are notifications now go to the log.')
    .argument('[id]', 'one entry', wholeNumber(1))
    .option('--all', 'everything that is held')
    .addHelpText(
      'after',
      `
Useful after an upgrade that can read more. A body that still cannot be read stays where it is.

Example:
  $ earshot quarantine retry 12`,
    )
    .action(async (id: number | undefined, { all }: { all?: true }) => {
      if ((id === undefined) === (all === undefined)) {
        throw new AppError('usage', 'Name one entry, or use --all: `earshot quarantine retry 12`');
      }
      await retry(io, id);
    });
}

async function retry(io: Io, id: number | undefined): Promise<void> {
  const store = await openStore({ ...readDataConfig(io), nowUs: io.nowUs, mustExist: true });
  try {
    const ids = id === undefined ? [] : [id];
    if (id === undefined) {
      for await (const row of store.quarantined({ released: false })) ids.push(row.id);
    }
    let held = 0;
    for (const each of ids) {
      const receipt = await store.retry(each, io.nowUs());
      if (receipt.outcome === 'rejected') held += 1;
      await writeOut(io.stdout, `${each}  ${told(receipt)}\n`);
    }
    if (held > 0) {
      throw new AppError('invalid', `${held} of ${ids.length} cannot be read yet and stay held.`);
    }
  } finally {
    await store.close();
  }
}

interface DropFlags {
  olderThan?: number;
  all?: true;
  yes?: true;
}

function dropCommand(io: Io): Command {
  const age = (text: string) => {
    if (/^\d+(\.\d+)?[smhdw]$/.test(text)) return parseTimeArgument(text, io.nowUs());
    throw new InvalidArgumentError('Use an age such as 12h or 30d.');
  };
  return new Command('drop')
    .description('Remove held bodies permanently. Shows which, and asks.')
    .argument('[ids...]', 'entries from `earshot quarantine list`', (text, ids: number[] = []) => [
      ...ids,
      wholeNumber(1)(text),
    ])
    .option('--older-than <age>', 'those received longer ago: 12h, 30d', age)
    .option('--all', 'everything that is held')
    .addOption(yesOption())
    .addHelpText(
      'after',
      `
Entries that were read by a retry are not held; \`earshot prune\` removes them. The space in the file
is used again once older notifications are pruned.

Examples:
  $ earshot quarantine drop 12 13
  $ earshot quarantine drop --older-than 30d --yes`,
    )
    .action(async (ids: number[] = [], flags: DropFlags) => {
      const choices = [ids.length > 0, flags.olderThan !== undefined, flags.all === true];
      if (choices.filter(Boolean).length !== 1) {
        throw new AppError(
          'usage',
          'Name entries, or use --older-than or --all: `earshot quarantine drop 12`',
        );
      }
      await drop(io, ids, flags);
    });
}

async function drop(io: Io, ids: readonly number[], flags: DropFlags): Promise<void> {
  const store = await openStore({ ...readDataConfig(io), nowUs: io.nowUs, mustExist: true });
  try {
    const { olderThan = Number.POSITIVE_INFINITY, yes } = flags;
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
    if (rows.length === 0) return void io.stderr.write('Nothing to drop.\n');
    const shown = rows.slice(0, shownMax);
    await printTable(io.stderr, columns, shown);
    if (rows.length > shown.length) io.stderr.write(`… and ${rows.length - shown.length} more\n`);
    await confirm(io, `Remove ${counted(rows.length, 'body', 'bodies')} permanently?`, { yes });
    const dropped = await store.drop(rows.map(({ id }) => id));
    io.stderr.write(`${dropped} dropped.\n`);
  } finally {
    await store.close();
  }
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
  {
    title: 'received (UTC)',
    value: (row) => formatDateUs(row.receivedAtUs).slice(0, 19).replace('T', ' '),
  },
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
    releasedAt: releasedAtUs === null ? null : formatDateUs(releasedAtUs),
  };
}

async function* mapped(rows: AsyncIterable<QuarantineRow>) {
  for await (const row of rows) yield toOutput(row);
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
