/** `earshot subscriptions`: looks at the account's subscriptions, and changes single ones of ours. */
import { Command } from 'commander';
import type { Ours } from '../../admin/direct-change.ts';
import { lastDeliveryOf } from '../../admin/maintain.ts';
import { sortAccount } from '../../admin/plan.ts';
import { type Lifetime, lifetimeOf } from '../../admin/review.ts';
import type { CatalogueSubscription } from '../../admin/subscription-client.ts';
import { dataSections, loadConfig } from '../../config/config.ts';
import type { Gap, HistoryEntry, Registration } from '../../domain/account.ts';
import { AppError, isAppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/dates.ts';
import { printable } from '../../domain/text.ts';
import { openStoreReader } from '../../store/store.ts';
import { type OpenedAccount, withAccount } from '../account.ts';
import { confirm, limitOption, yesOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { type Column, printTable, writeForeign } from '../output.ts';

export function subscriptionsCommand(io: Io): Command {
  return new Command('subscriptions')
    .description('Look at the subscriptions of the account; pause, resume, cancel, delete ours.')
    .addHelpText(
      'after',
      `
Examples:
  $ earshot subscriptions
  $ earshot subscriptions show default
  $ earshot subscriptions pause default
  $ earshot subscriptions history`,
    )
    .addCommand(listCommand(io), { isDefault: true })
    .addCommand(showCommand(io))
    .addCommand(pauseCommand(io))
    .addCommand(resumeCommand(io))
    .addCommand(removeCommand(io, 'cancel'))
    .addCommand(removeCommand(io, 'delete'))
    .addCommand(historyCommand(io));
}

function pauseCommand(io: Io): Command {
  return new Command('pause')
    .description(
      'Pause one of ours. What happens meanwhile is not sent later; the gap is recorded.',
    )
    .argument('<name or id>')
    .addHelpText(
      'after',
      '\nMaintenance leaves it paused until it is resumed.\n\nExample:\n  $ earshot subscriptions pause default',
    )
    .action((nameOrId: string) =>
      withAccount(io, {}, async ({ world }) => {
        const { findOurs, pauseByCommand } = await import('../../admin/direct-change.ts');
        const ours = await findOurs(nameOrId, world);
        if (ours.current.status === 'paused' && ours.registration?.heldBy === 'command') {
          return tell(io, `${ours.name} is paused already.`);
        }
        await pauseByCommand(ours, world);
        tell(io, `${ours.name} is paused.`);
      }),
    );
}

function resumeCommand(io: Io): Command {
  return new Command('resume')
    .description('Resume one of ours, and put it back under maintenance.')
    .argument('<name or id>')
    .addHelpText('after', '\nExample:\n  $ earshot subscriptions resume default')
    .action((nameOrId: string) =>
      withAccount(io, {}, async ({ world }) => {
        const { findOurs, resumeByCommand } = await import('../../admin/direct-change.ts');
        const ours = await findOurs(nameOrId, world);
        if (ours.current.status === 'running' && ours.registration?.heldBy === null) {
          return tell(io, `${ours.name} is running already.`);
        }
        await resumeByCommand(ours, world);
        tell(io, `${ours.name} is running.`);
      }),
    );
}

function removeCommand(io: Io, how: 'cancel' | 'delete'): Command {
  const request = { cancel: 'PATCH to cancelled', delete: 'DELETE' }[how];
  return new Command(how)
    .description(`Take one of ours out of the account for good (${request}).`)
    .argument('<name or id>')
    .addOption(yesOption())
    .addHelpText(
      'after',
      `\nWhat was received stays here. With an earshot.config.ts that names it, \`register\` makes it anew.\n\nExample:\n  $ earshot subscriptions ${how} default`,
    )
    .action((nameOrId: string, { yes }: { yes?: true }) =>
      withAccount(io, {}, async ({ world }) => {
        const { findOurs, forgetGone, removeByCommand } = await import(
          '../../admin/direct-change.ts'
        );
        const ours = await findOurs(nameOrId, world).catch(async (error: unknown) => {
          if (!isAppError(error, 'not_found') || !(await forgetGone(nameOrId, world))) throw error;
          return null;
        });
        if (ours === null) return tell(io, `${nameOrId} was gone already, and is forgotten.`);
        io.stderr.write(`This goes for good, and sends nothing any more:\n${description(ours)}\n`);
        await confirm(io, how === 'cancel' ? 'Cancel it?' : 'Delete it?', { yes });
        await removeByCommand(ours, how, world);
        tell(io, `${ours.name} is gone from the account.`);
      }),
    );
}

function description({ name, current }: Ours): string {
  return [
    `  name    ${name}`,
    `  id      ${printable(current.id)}`,
    `  status  ${printable(current.status)}`,
    `  events  ${printable(current.events.join(', '))}`,
    `  filter  ${current.filter === '' ? '(none: every product)' : printable(current.filter)}`,
  ].join('\n');
}

function tell(io: Io, text: string): void {
  io.stderr.write(`${text}\n`);
}

interface Row {
  /** Ours have a name; null for those of others. */
  name: string | null;
  listed: CatalogueSubscription;
  registration: Registration | undefined;
  lifetime: Lifetime;
}

function listCommand(io: Io): Command {
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

function showCommand(io: Io): Command {
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

function historyCommand(io: Io): Command {
  return new Command('history')
    .description('Tell what was done to our subscriptions and why, newest first.')
    .argument('[name]', 'only this one')
    .addOption(limitOption().default(100))
    .option('--json', 'as JSON: at subscription subscriptionId action actor reason')
    .addHelpText('after', '\nExample:\n  $ earshot subscriptions history default --limit 20')
    .action(async (name: string | undefined, flags: { limit: number; json?: true }) => {
      const store = openStoreReader(loadConfig(io, dataSections).dataDir);
      try {
        const { limit, json } = flags;
        const asked = name === undefined ? { limit } : { subscription: name, limit };
        const entries = await store.administration.history(asked);
        if (json) {
          await writeForeign(io.stdout, `${JSON.stringify(entries.map(historyJson), null, 2)}\n`);
        } else if ((await printTable(io.stdout, historyColumns, entries)) === 0) {
          io.stderr.write(`Nothing has been done${name === undefined ? '' : ` to ${name}`} yet.\n`);
        }
      } finally {
        await store.close();
      }
    });
}

const historyColumns: readonly Column<HistoryEntry>[] = [
  {
    title: 'time (UTC)',
    value: ({ atUs }) => formatDateUs(atUs).slice(0, 19).replace('T', ' '),
  },
  { title: 'subscription', value: ({ subscription }) => subscription },
  { title: 'action', value: ({ action }) => action },
  { title: 'by', value: ({ actor }) => actor },
  { title: 'why', value: ({ reason }) => reason, flexible: true },
];

function historyJson({ atUs, ...rest }: HistoryEntry) {
  return { at: formatDateUs(atUs), ...rest };
}
