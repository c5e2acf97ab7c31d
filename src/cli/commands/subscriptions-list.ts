/** `earshot subscriptions list` and `show`: what the account holds, ours and others'. */
import { Command } from 'commander';
import { type Lifetime, lifetimeOf } from '../../admin/maintenance/lifetimes.ts';
import { lastDeliveryOf } from '../../admin/maintenance/maintain.ts';
import { sortAccount } from '../../admin/plan/ownership.ts';
import type { CatalogueSubscription } from '../../admin/service/catalogue-subscription.ts';
import type { Gap, Registration } from '../../domain/administration.ts';
import { AppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import { printable } from '../../domain/printable.ts';
import type { OpenedAccount } from '../account.ts';
import type { Io } from '../io.ts';
import { type Column, printTable } from '../table.ts';
import { withAccount } from '../with-account.ts';
import { writeForeign } from '../write-out.ts';

interface Row {
  /** Ours have a name; null for those of others. */
  name: string | null;
  listed: CatalogueSubscription;
  registration: Registration | undefined;
  lifetime: Lifetime;
}

export function listCommand(io: Io): Command {
  return new Command('list')
    .description('List every subscription of the account; those without a name are not ours.')
    .option(
      '--json',
      'as JSON: name id status type events filter endpoint submittedAt lastNotificationAt pausesAt cancelsAt heldBy',
    )
    .addHelpText(
      'after',
      '\nA narrow terminal has fewer columns; `subscriptions show` and --json have everything.\n\nExample:\n  $ earshot subscriptions list --json',
    )
    .action(({ json }: { json?: true }) =>
      withAccount(io, { readOnly: true }, async (account) => {
        const rows = await readRows(account);
        if (json)
          return writeForeign(io.stdout, `${JSON.stringify(rows.map(toOutput), null, 2)}\n`);
        if ((await printTable(io.stdout, columns, rows)) === 0) {
          io.stderr.write('The account has no subscriptions.\n');
        }
      }),
    );
}

export function showCommand(io: Io): Command {
  return new Command('show')
    .description('Show one: what it is, until when it lives, what was missed.')
    .argument('<name or id>')
    .option('--json', 'as JSON, a list: the fields of list, and gaps (from to reason)')
    .addHelpText('after', '\nExample:\n  $ earshot subscriptions show default')
    .action((nameOrId: string, { json }: { json?: true }) =>
      withAccount(io, { readOnly: true }, async (account) => {
        const wanted = nameOrId.toLowerCase();
        const rows = await readRows(account);
        const found = rows.filter(
          ({ name, listed }) => name === wanted || listed.id.toLowerCase() === wanted,
        );
        if (found.length === 0) {
          throw new AppError('not_found', `There is no subscription ${nameOrId} in the account.`, {
            advice: '`earshot subscriptions list` shows all.',
          });
        }
        const gaps = await account.store.administration.gaps();
        const gapsOf = ({ name }: Row) => gaps.filter(({ subscription }) => subscription === name);
        const output = (row: Row) => ({ ...toOutput(row), gaps: gapsOf(row).map(gapOutput) });
        const text = json
          ? JSON.stringify(found.map(output), null, 2)
          : found.map((row) => details(row, gapsOf(row))).join('\n\n');
        await writeForeign(io.stdout, `${text}\n`);
      }),
    );
}

async function readRows({ world, store }: OpenedAccount): Promise<Row[]> {
  const { client, publicUrl, nowUs } = world;
  const { administration } = store;
  const [listed, registrations, marks] = await Promise.all([
    client.list(),
    administration.registrations(),
    administration.deliveryMarks(),
  ]);
  const { ours, strangers } = sortAccount(listed, { publicUrl, registrations });
  const row = (name: string | null, one: CatalogueSubscription): Row => {
    const registration = registrations.find((each) => each.name === name);
    const lastDeliveryAtUs = name === null ? null : lastDeliveryOf(name, marks, nowUs());
    const known = { listed: one, registration, lastDeliveryAtUs, nowUs: nowUs() };
    return { name, listed: one, registration, lifetime: lifetimeOf(known) };
  };
  return [
    ...[...ours].flatMap(([name, owned]) => owned.map((one) => row(name, one))),
    ...strangers.map((one) => row(null, one)),
  ];
}

const minute = (us: number | null) =>
  us === null ? '-' : formatDateUs(us).slice(0, 16).replace('T', ' ');
const second = (us: number) => formatDateUs(us).slice(0, 19).replace('T', ' ');
const day = (us: number) => formatDateUs(us).slice(0, 10);

const columns: readonly Column<Row>[] = [
  { title: 'name', value: ({ name }) => name ?? '-' },
  { title: 'status', value: ({ listed }) => listed.status },
  { title: 'type', value: ({ listed }) => typeOf(listed), optionalRank: 4 },
  { title: 'events', value: ({ listed }) => listed.events.join(','), optionalRank: 2 },
  {
    title: 'notified (UTC)',
    value: ({ listed }) => minute(listed.lastNotificationAtUs),
    optionalRank: 1,
  },
  // One without a name is shown by its id only.
  {
    title: 'id',
    value: ({ listed }) => listed.id,
    optionalRank: 3,
    requiredBy: ({ name }) => name === null,
  },
  { title: 'filter', value: ({ listed }) => listed.filter || '(every product)', flexible: true },
];

function toOutput({ name, listed, registration, lifetime }: Row) {
  const { submittedAtUs, lastNotificationAtUs, id, status, events, filter, endpoint } = listed;
  const time = (us: number | null) => (us === null ? null : formatDateUs(us));
  return {
    name,
    id,
    status,
    type: typeOf(listed),
    events,
    filter,
    endpoint,
    submittedAt: time(submittedAtUs),
    lastNotificationAt: time(lastNotificationAtUs),
    pausesAt: status === 'running' ? time(lifetime.pausesAtUs) : null,
    cancelsAt: time(lifetime.cancelsAtUs),
    heldBy: registration?.heldBy ?? null,
  };
}

function details({ name, listed, registration, lifetime }: Row, gaps: readonly Gap[]): string {
  const { id, status, events, filter, endpoint, submittedAtUs, lastNotificationAtUs } = listed;
  const held = { command: ', held by command', person: ', left as a person set it' } as const;
  const lines = [
    ['name', name ?? '- (not ours)'],
    ['id', id],
    ['status', `${status}${registration?.heldBy ? held[registration.heldBy] : ''}`],
    ['type', typeOf(listed)],
    ['events', events.join(', ')],
    ['filter', filter === '' ? '(none: every product)' : filter],
    ['endpoint', endpoint ?? '-'],
    ['submitted', minute(submittedAtUs)],
    ['last notification', minute(lastNotificationAtUs)],
    ...(status === 'running' ? [['paused by itself', day(lifetime.pausesAtUs)]] : []),
    ['deleted by itself', day(lifetime.cancelsAtUs)],
    ...gaps.map((gap) => [
      'missed',
      `${second(gap.fromUs)} to ${gap.toUs === null ? 'now' : second(gap.toUs)}: ${gap.reason}`,
    ]),
  ];
  return lines.map(([label = '', text = '']) => `${label.padEnd(19)}${printable(text)}`).join('\n');
}

function gapOutput({ fromUs, toUs, reason }: Gap) {
  return { from: formatDateUs(fromUs), to: toUs === null ? null : formatDateUs(toUs), reason };
}

/** Facts, catalogue 1.3: old answers do not name the type, but only push has an endpoint. */
function typeOf({ type, endpoint }: CatalogueSubscription): string {
  return type ?? (endpoint === null ? 'pull' : 'push');
}
