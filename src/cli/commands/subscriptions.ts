/** `earshot subscriptions`: shows the account's subscriptions, and changes single ones of ours. */
import type { ManagedSubscription } from '../../admin/direct-change.ts';
import { lastDeliveryOf } from '../../admin/maintain.ts';
import { sortAccount } from '../../admin/plan.ts';
import { type Lifetime, lifetimeOf } from '../../admin/review.ts';
import type { CatalogueSubscription } from '../../admin/subscription-client.ts';
import type { Gap, HistoryEntry, Registration } from '../../domain/account.ts';
import { AppError, isAppError } from '../../domain/app-error.ts';
import { formatDateUs, shortDateUs } from '../../domain/dates.ts';
import { printable } from '../../domain/text.ts';
import type { OpenedAccount } from '../account.ts';
import { defineCommand, defineGroup, type Parts } from '../command.ts';
import { confirm, limitOption, yesOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { type Column, isoTime, printJson, printTable, writeForeign } from '../output.ts';

type Context<Part extends keyof Parts> = Io & Pick<Parts, Part>;

const pauseCommand = defineCommand('pause', {
  description: 'Pause one of ours. What happens meanwhile is not sent later; the gap is recorded.',
  flags: (command) => command.argument('<name or id>'),
  help: 'Maintenance leaves it paused until it is resumed.\n\nExample:\n  $ earshot subscriptions pause default',
  needs: ['account'],
  run: (io, _, nameOrId: string) => changeStatus(io, nameOrId, 'paused'),
});

const resumeCommand = defineCommand('resume', {
  description: 'Resume one of ours, and put it back under maintenance.',
  flags: (command) => command.argument('<name or id>'),
  help: 'Example:\n  $ earshot subscriptions resume default',
  needs: ['account'],
  run: (io, _, nameOrId: string) => changeStatus(io, nameOrId, 'running'),
});

async function changeStatus(
  io: Context<'account'>,
  nameOrId: string,
  status: 'paused' | 'running',
): Promise<void> {
  const { findManaged, pauseByCommand, resumeByCommand } = await import(
    '../../admin/direct-change.ts'
  );
  const ours = await findManaged(nameOrId, io.account);
  const { name, current, registration } = ours;
  const heldBy = status === 'paused' ? 'command' : null;
  if (current.status === status && registration?.heldBy === heldBy) {
    return tell(io, `${name} is ${status} already.`);
  }
  await (status === 'paused' ? pauseByCommand : resumeByCommand)(ours, io.account);
  tell(io, `${name} is ${status}.`);
}

const removeCommand = (how: 'cancel' | 'delete') =>
  defineCommand(how, {
    description: `Take one of ours out of the account for good (${{ cancel: 'PATCH to cancelled', delete: 'DELETE' }[how]}).`,
    flags: (command) => command.argument('<name or id>').addOption(yesOption()),
    help: `What was received stays here. With an earshot.config.ts that names it, \`register\` makes it anew.\n\nExample:\n  $ earshot subscriptions ${how} default`,
    needs: ['account'],
    run: async ({ account, ...io }, { yes }: { yes?: true }, nameOrId: string) => {
      const { findManaged, removeStaleRegistration, removeByCommand } = await import(
        '../../admin/direct-change.ts'
      );
      const ours = await findManaged(nameOrId, account).catch(async (error: unknown) => {
        if (!isAppError(error, 'not_found') || !(await removeStaleRegistration(nameOrId, account)))
          throw error;
        return null;
      });
      if (ours === null) return tell(io, `${nameOrId} was gone already, and is forgotten.`);
      tell(io, `This goes for good, and sends nothing any more:\n${description(ours)}`);
      await confirm(io, how === 'cancel' ? 'Cancel it?' : 'Delete it?', { yes });
      await removeByCommand(ours, how, account);
      tell(io, `${ours.name} is gone from the account.`);
    },
  });

function description({
  name,
  current: { id, status, events, filter },
}: ManagedSubscription): string {
  const lines = [
    ['name', name],
    ['id', id],
    ['status', status],
    ['events', events.join(', ')],
    ['filter', filterText(filter)],
  ];
  return lines
    .map(([label = '', text = '']) => `  ${label.padEnd(8)}${printable(text)}`)
    .join('\n');
}

const filterText = (filter: string) => (filter === '' ? '(none: every product)' : filter);

function tell(io: Pick<Io, 'stderr'>, text: string): void {
  io.stderr.write(`${text}\n`);
}

interface Row {
  /** Ours have a name; null for those of others. */
  name: string | null;
  listed: CatalogueSubscription;
  registration: Registration | undefined;
  lifetime: Lifetime;
}

const listCommand = defineCommand('list', {
  description: 'List every subscription of the account; those without a name are not ours.',
  flags: (command) =>
    command.option(
      '--json',
      'as JSON: name id status type events filter endpoint submittedAt lastNotificationAt pausesAt cancelsAt heldBy',
    ),
  help: 'A narrow terminal has fewer columns; `subscriptions show` and --json have everything.\n\nExample:\n  $ earshot subscriptions list --json',
  needs: ['account'],
  account: () => ({ readOnly: true }),
  run: async (io, { json }: { json?: true }) => {
    const rows = await readRows(io.account);
    if (json) return printJson(io.stdout, rows.map(toOutput));
    if ((await printTable(io.stdout, columns, rows)) === 0) {
      tell(io, 'The account has no subscriptions.');
    }
  },
});

const showCommand = defineCommand('show', {
  description: 'Show one: what it is, until when it lives, what was missed.',
  flags: (command) =>
    command
      .argument('<name or id>')
      .option('--json', 'as JSON, a list: the fields of list, and gaps (from to reason)'),
  help: 'Example:\n  $ earshot subscriptions show default',
  needs: ['account'],
  account: () => ({ readOnly: true }),
  run: show,
});

async function show(
  { account, stdout }: Context<'account'>,
  { json }: { json?: true },
  nameOrId: string,
): Promise<void> {
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
  return {
    name,
    id,
    status,
    type: typeOf(listed),
    events,
    filter,
    endpoint,
    submittedAt: isoTime(submittedAtUs),
    lastNotificationAt: isoTime(lastNotificationAtUs),
    pausesAt: status === 'running' ? isoTime(lifetime.pausesAtUs) : null,
    cancelsAt: isoTime(lifetime.cancelsAtUs),
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
    ['filter', filterText(filter)],
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
  return { from: formatDateUs(fromUs), to: isoTime(toUs), reason };
}

/** Facts, catalogue 1.3: old answers do not name the type, but only push has an endpoint. */
function typeOf({ type, endpoint }: CatalogueSubscription): string {
  return type ?? (endpoint === null ? 'pull' : 'push');
}

const historyCommand = defineCommand('history', {
  description: 'Tell what was done to our subscriptions and why, newest first.',
  flags: (command) =>
    command
      .argument('[name]', 'only this one')
      .addOption(limitOption().default(100))
      .option('--json', 'as JSON: at subscription subscriptionId action actor reason'),
  help: 'Example:\n  $ earshot subscriptions history default --limit 20',
  needs: ['reader'],
  run: async (io, { limit, json }: { limit: number; json?: true }, name?: string) => {
    const asked = name === undefined ? { limit } : { subscription: name, limit };
    const entries = await io.reader.administration.history(asked);
    if (json) {
      const shown = entries.map(({ atUs, ...rest }) => ({ at: formatDateUs(atUs), ...rest }));
      await printJson(io.stdout, shown);
    } else if ((await printTable(io.stdout, historyColumns, entries)) === 0) {
      tell(io, `Nothing has been done${name === undefined ? '' : ` to ${name}`} yet.`);
    }
  },
});

const historyColumns: readonly Column<HistoryEntry>[] = [
  { title: 'time (UTC)', value: ({ atUs }) => second(atUs) },
  { title: 'subscription', value: ({ subscription }) => subscription },
  { title: 'action', value: ({ action }) => action },
  { title: 'by', value: ({ actor }) => actor },
  { title: 'why', value: ({ reason }) => reason, flexible: true },
];

export const subscriptionsCommand = defineGroup('subscriptions', {
  description: 'Look at the subscriptions of the account; pause, resume, cancel, delete ours.',
  help: `Examples:
  $ earshot subscriptions
  $ earshot subscriptions show default
  $ earshot subscriptions pause default
  $ earshot subscriptions history`,
  usual: listCommand,
  commands: [
    showCommand,
    pauseCommand,
    resumeCommand,
    removeCommand('cancel'),
    removeCommand('delete'),
    historyCommand,
  ],
});
