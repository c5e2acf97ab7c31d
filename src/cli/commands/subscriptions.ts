/** `earshot subscriptions`: lists the subscriptions of the account, and changes managed ones. */

import { sortAccount } from '../../admin/differences.ts';
import { type Lifetime, lastDeliveryOf, lifetimeOf } from '../../admin/lifetime.ts';
import type { CatalogueSubscription } from '../../admin/subscription-client.ts';
import type { Gap, HistoryEntry, Registration } from '../../domain/account.ts';
import { AppError, isAppError } from '../../domain/app-error.ts';
import { formatDateUs, shortDateUs } from '../../domain/dates.ts';
import { printable } from '../../domain/text.ts';
import type { OpenedAccount } from '../account.ts';
import { defineCommand, defineGroup, type Parts } from '../command.ts';
import { confirm, jsonOption, limitOption, yesOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { type Column, isoTime, printJson, printTable, writeForeign } from '../output.ts';

type Context<Part extends keyof Parts> = Io & Pick<Parts, Part>;

const pauseCommand = defineCommand('pause', {
  description: 'Pause a managed subscription.',
  flags: (command) => command.argument('<name or id>'),
  help: `The catalogue never pushes the events that happen during the pause. earshot records the pause as a
gap. After you resume the subscription, the receiver fetches the events of the gap. Without
earshot.config.ts, the subscription stays paused until you resume it.

Examples:
  $ earshot subscriptions pause default       pause the subscription
  $ earshot subscriptions resume default      resume the subscription later
  $ earshot subscriptions history default     list the changes with reasons`,
  needs: ['account'],
  run: (io, _, nameOrId: string) => changeStatus(io, nameOrId, 'paused'),
});

const resumeCommand = defineCommand('resume', {
  description: 'Resume a managed subscription.',
  flags: (command) => command.argument('<name or id>'),
  help: `Examples:
  $ earshot subscriptions resume default      resume the subscription
  $ earshot subscriptions show default        show the state and the gaps
  $ earshot subscriptions history default     list the changes with reasons`,
  needs: ['account'],
  run: (io, _, nameOrId: string) => changeStatus(io, nameOrId, 'running'),
});

async function changeStatus(
  { account, ...io }: Context<'account'>,
  nameOrId: string,
  status: 'paused' | 'running',
): Promise<void> {
  const { findManaged, setStatus } = await import('../../admin/direct-change.ts');
  const found = await findManaged(nameOrId, account);
  await setStatus(found, status, { actor: 'subscriptions', reason: 'by command' }, account);
  print(io, `${found.name} is ${status}.`);
}

const deleteCommand = defineCommand('delete', {
  description: 'Delete a managed subscription permanently.',
  flags: (command) => command.argument('<name or id>').addOption(yesOption()),
  help: `A deleted subscription cannot be resumed. Received notifications remain in the log, and unread ones
of a queue are first stored. If earshot.config.ts contains the subscription, then \`earshot
register\` creates the subscription again.

Examples:
  $ earshot subscriptions delete default           delete after a prompt
  $ earshot subscriptions delete default --yes     delete without a prompt
  $ earshot subscriptions list                     show the remaining subscriptions`,
  needs: ['account'],
  run: async ({ account, ...io }, { yes }: { yes?: true }, nameOrId: string) => {
    const { deleteByCommand, findManaged, removeStaleRegistration } = await import(
      '../../admin/direct-change.ts'
    );
    const found = await findManaged(nameOrId, account).catch(async (error: unknown) => {
      if (!isAppError(error, 'not_found') || !(await removeStaleRegistration(nameOrId, account)))
        throw error;
      return null;
    });
    if (found === null) {
      return print(io, `${nameOrId} no longer exists. Its registration was removed.`);
    }
    const { name, current } = found;
    const facts = [current.id, current.status, filterText(current.filter)].map(printable);
    print(io, `${name}: ${facts.join(', ')}`);
    await confirm(io, 'Delete this subscription permanently?', { yes });
    await deleteByCommand(found, account);
    print(io, `Removed ${name} from the account.`);
  },
});

const filterText = (filter: string) => (filter === '' ? '(none: all products)' : filter);

function print(io: Pick<Io, 'stderr'>, text: string): void {
  io.stderr.write(`${text}\n`);
}

interface Row {
  /** Name of a managed subscription; null for an unmanaged one. */
  name: string | null;
  listed: CatalogueSubscription;
  registration: Registration | undefined;
  lifetime: Lifetime;
}

const listCommand = defineCommand('list', {
  description: 'List all subscriptions of the account.',
  flags: (command) => command.addOption(jsonOption()),
  help: `Fields of --json: name, id, status, type, events, filter, endpoint, submittedAt, lastNotificationAt,
pausesAt, cancelsAt, changedByPerson. On a narrow terminal, the table has fewer columns.
  name             null if the subscription is unmanaged
  pausesAt         time at which the catalogue pauses it, unless a notification arrives
  cancelsAt        time at which the catalogue deletes it, unless a notification arrives
  changedByPerson  true if a person changed the status in the catalogue, which maintenance keeps

Examples:
  $ earshot subscriptions list                                               print a table
  $ earshot subscriptions list --json                                        print all fields
  $ earshot subscriptions list --json | jq '.[] | select(.name == null)'   unmanaged subscriptions`,
  needs: ['account'],
  account: () => ({ readOnly: true }),
  run: async (io, { json }: { json?: true }) => {
    const rows = await readRows(io.account);
    if (json) return printJson(io.stdout, rows.map(toOutput));
    if ((await printTable(io.stdout, columns, rows)) === 0) {
      print(io, 'The account has no subscriptions.');
    }
  },
});

const showCommand = defineCommand('show', {
  description:
    'Show a subscription with its settings, its gaps, and its expiry dates in the catalogue.',
  flags: (command) => command.argument('<name or id>').addOption(jsonOption()),
  help: `A gap is a time range in which the subscription was paused or did not exist. --json prints an array
of objects with the fields of \`earshot subscriptions list\`, and with the field gaps. Each gap has
the fields from, to and reason.

Examples:
  $ earshot subscriptions show default                                  show by name
  $ earshot subscriptions show default --json                           print JSON
  $ earshot subscriptions show 48d5356b-775f-4a97-bbff-9c235ff84573     show by id`,
  needs: ['account'],
  account: () => ({ readOnly: true }),
  run: show,
});

async function show(
  { account, stdout }: Context<'account'>,
  { json }: { json?: true },
  nameOrId: string,
): Promise<void> {
  const key = nameOrId.toLowerCase();
  const rows = await readRows(account);
  const found = rows.filter(({ name, listed }) => name === key || listed.id.toLowerCase() === key);
  if (found.length === 0) {
    throw new AppError('not_found', `There is no subscription ${nameOrId} in the account.`, {
      advice: 'To list all: `earshot subscriptions list`.',
    });
  }
  const gaps = await account.store.administration.gaps();
  const gapsOf = ({ name }: Row) => gaps.filter(({ subscription }) => subscription === name);
  const output = (row: Row) => ({ ...toOutput(row), gaps: gapsOf(row).map(gapOutput) });
  const text = json
    ? JSON.stringify(found.map(output), null, 2)
    : found.map((row) => details(row, gapsOf(row))).join('\n\n');
  await writeForeign(stdout, `${text}\n`);
}

async function readRows(account: OpenedAccount): Promise<Row[]> {
  const { client, publicUrl, nowUs, administration } = account;
  const [listed, registrations, marks] = await Promise.all([
    client.list(),
    administration.registrations(),
    administration.deliveryMarks(),
  ]);
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations });
  const row = (name: string | null, one: CatalogueSubscription): Row => {
    const registration = registrations.find((each) => each.name === name);
    const lastDeliveryAtUs = name === null ? null : lastDeliveryOf(name, marks, nowUs());
    const known = { listed: one, registration, lastDeliveryAtUs, nowUs: nowUs() };
    return { name, listed: one, registration, lifetime: lifetimeOf(known) };
  };
  return [
    ...[...managed].flatMap(([name, owned]) => owned.map((one) => row(name, one))),
    ...unmanaged.map((one) => row(null, one)),
  ];
}

const minute = (us: number | null) => (us === null ? '-' : shortDateUs(us));

const second = (us: number) => shortDateUs(us, 'second');

const day = (us: number) => formatDateUs(us).slice(0, 10);

const columns: readonly Column<Row>[] = [
  // Commands accept the id of a subscription that has no name here.
  { title: 'name or id', value: ({ name, listed }) => name ?? listed.id },
  { title: 'status', value: ({ listed }) => listed.status },
  { title: 'type', value: ({ listed }) => listed.type, optionalRank: 4 },
  { title: 'events', value: ({ listed }) => listed.events.join(','), optionalRank: 2 },
  {
    title: 'notified (UTC)',
    value: ({ listed }) => minute(listed.lastNotificationAtUs),
    optionalRank: 1,
  },
  {
    title: 'id',
    value: ({ listed }) => listed.id,
    optionalRank: 3,
  },
  { title: 'filter', value: ({ listed }) => listed.filter || '(all products)', flexible: true },
];

function toOutput({ name, listed, registration, lifetime }: Row) {
  const { submittedAtUs, lastNotificationAtUs, id, status, events, filter, endpoint } = listed;
  return {
    name,
    id,
    status,
    type: listed.type,
    events,
    filter,
    endpoint,
    submittedAt: isoTime(submittedAtUs),
    lastNotificationAt: isoTime(lastNotificationAtUs),
    pausesAt: status === 'running' ? isoTime(lifetime.pausesAtUs) : null,
    cancelsAt: isoTime(lifetime.cancelsAtUs),
    changedByPerson: registration?.changedByPerson === true,
  };
}

function details({ name, listed, registration, lifetime }: Row, gaps: readonly Gap[]): string {
  const { id, status, events, filter, endpoint, submittedAtUs, lastNotificationAtUs } = listed;
  const lines = [
    ['name', name ?? '- (unmanaged)'],
    ['id', id],
    [
      'status',
      `${status}${registration?.changedByPerson ? ', changed by a person in the catalogue' : ''}`,
    ],
    ['type', listed.type],
    ['events', events.join(', ')],
    ['filter', filterText(filter)],
    ['endpoint', endpoint ?? '-'],
    ['submitted', minute(submittedAtUs)],
    ['last notification', minute(lastNotificationAtUs)],
    ...(status === 'running' ? [['automatic pause', day(lifetime.pausesAtUs)]] : []),
    ['automatic deletion', day(lifetime.cancelsAtUs)],
    ...gaps.map((gap) => [
      'gap',
      `${second(gap.fromUs)} to ${gap.toUs === null ? 'now' : second(gap.toUs)}: ${gap.reason}`,
    ]),
  ];
  return lines.map(([label = '', text = '']) => `${label.padEnd(19)}${printable(text)}`).join('\n');
}

function gapOutput({ fromUs, toUs, reason }: Gap) {
  return { from: formatDateUs(fromUs), to: isoTime(toUs), reason };
}

const historyCommand = defineCommand('history', {
  description: 'List the changes of managed subscriptions, the newest first, with reasons.',
  flags: (command) =>
    command
      .argument('[name]', 'name of the subscription (default: all)')
      .addOption(limitOption().default(100))
      .addOption(jsonOption()),
  help: `Fields of --json: at, subscription, subscriptionId, action, actor, reason. The actor is the command
that made the change.

Examples:
  $ earshot subscriptions history                        list all changes
  $ earshot subscriptions history default --limit 20     list 20 changes of one subscription
  $ earshot subscriptions history --json                 print all fields`,
  needs: ['reader'],
  run: async (io, { limit, json }: { limit: number; json?: true }, name?: string) => {
    const asked = name === undefined ? { limit } : { subscription: name, limit };
    const entries = await io.reader.administration.history(asked);
    if (json) {
      const shown = entries.map(({ atUs, ...rest }) => ({ at: formatDateUs(atUs), ...rest }));
      await printJson(io.stdout, shown);
    } else if ((await printTable(io.stdout, historyColumns, entries)) === 0) {
      print(io, `No changes${name === undefined ? '' : ` of ${name}`} yet.`);
    }
  },
});

const historyColumns: readonly Column<HistoryEntry>[] = [
  { title: 'time (UTC)', value: ({ atUs }) => second(atUs) },
  { title: 'subscription', value: ({ subscription }) => subscription },
  { title: 'action', value: ({ action }) => action },
  { title: 'by', value: ({ actor }) => actor },
  { title: 'reason', value: ({ reason }) => reason, flexible: true },
];

export const subscriptionsCommand = defineGroup('subscriptions', {
  description: 'List, pause, resume or delete subscriptions of the account.',
  help: `A subscription is managed if earshot has registered the subscription, or if its endpoint is
EARSHOT_PUBLIC_URL/notifications/<name>. Only managed subscriptions have a name and can be changed.

Examples:
  $ earshot subscriptions                   list all subscriptions
  $ earshot subscriptions show default      show one subscription
  $ earshot subscriptions pause default     pause one subscription
  $ earshot subscriptions history           list changes with reasons`,
  usual: listCommand,
  commands: [showCommand, pauseCommand, resumeCommand, deleteCommand, historyCommand],
});
