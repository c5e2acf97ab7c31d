/** `earshot subscriptions` lists the subscriptions of the account, and changes managed ones; `earshot maintain`. */

import { type Gap, lastDeliveryOf, lifetimeOf } from '../../admin/account.ts';
import { sortAccount } from '../../admin/differences.ts';
import { type MaintenanceResult, noteText } from '../../admin/maintain.ts';
import type { OpenedAccount } from '../../admin/open-account.ts';
import { defineCommand, defineGroup, type Parts, withParts } from '../../core/cli/command.ts';
import { confirm, jsonOption, limitOption, yesOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { asCalled, isoTime, painter, printJson, writeOut } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import { requireSubscription, unknownName } from '../../core/cli/row-forms.ts';
import { loadSubscriptionsFile } from '../../core/config/subscriptions-file.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import * as report from '../../core/terms/report.ts';
import { filterText } from '../../core/terms/subscription.ts';
import { momentText, printable } from '../../core/terms/text.ts';
import { historyTable } from './report.ts';

type Context = Io & Pick<Parts, 'account'>;

const pauseCommand = defineCommand('pause', {
  description: 'Pause a managed subscription.',
  flags: (command) => command.argument('<name>'),
  help: `The catalogue never pushes the events that happen during the pause. earshot records the pause as a
gap. After you resume the subscription, the receiver fetches the events of the gap. Without
earshot.config.ts, the subscription stays paused until you resume it.

Examples:
  $ earshot subscriptions pause default       pause the subscription
  $ earshot subscriptions resume default      resume the subscription later
  $ earshot subscriptions history default     list the changes with reasons`,
  needs: ['account'],
  run: (io, _, name: string) => changeStatus(io, name, 'paused'),
});

const resumeCommand = defineCommand('resume', {
  description: 'Resume a managed subscription.',
  flags: (command) => command.argument('<name>'),
  help: `Examples:
  $ earshot subscriptions resume default      resume the subscription
  $ earshot subscriptions show default        show the state and the gaps
  $ earshot subscriptions history default     list the changes with reasons`,
  needs: ['account'],
  run: (io, _, name: string) => changeStatus(io, name, 'running'),
});

async function changeStatus(
  { account, ...io }: Context,
  name: string,
  status: 'paused' | 'running',
): Promise<void> {
  const { changeStatus: change } = await import('../../admin/maintain.ts');
  await change(name, status, account, { actor: 'subscriptions', reason: 'by command' });
  io.stderr.write(`${name} is ${status}.\n`);
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
    const [{ applyDesired }, { findManaged }] = await Promise.all([
      import('../../admin/apply.ts'),
      import('../../admin/changes.ts'),
    ]);
    const { name, subscriptions } = await findManaged(nameOrId, account);
    if (subscriptions.length === 0)
      io.stderr.write(`${name} is registered, but not in the account.\n`);
    for (const { id, status, filter } of subscriptions)
      io.stderr.write(`${name}: ${[id, status, filterText(filter)].map(printable).join(', ')}\n`);
    await confirm(io, 'Delete this subscription permanently?', { yes });
    const by = { actor: 'subscriptions', reason: 'by command' } as const;
    await applyDesired({ desired: [], prune: name }, account, by);
    io.stderr.write(`Removed ${name} from the account.\n`);
  },
});

/** A subscription of the account; `name` is null for an unmanaged one. */
type Row = Awaited<ReturnType<typeof readRows>>[number];

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
  uses: () => ({ account: { readOnly: true } }),
  run: async (io, { json }: { json?: true }) => {
    const rows = await readRows(io.account);
    if (json) return printJson(io.stdout, rows.map(toOutput));
    const none = report.empty('The account has no subscriptions.');
    const block = rows.length === 0 ? none : report.table('Subscriptions', columns, rows);
    await printReport(io, { title: 'Subscriptions', blocks: [block] });
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
  uses: () => ({ account: { readOnly: true } }),
  run: show,
});

async function show(
  { account, ...io }: Context,
  { json }: { json?: true },
  nameOrId: string,
): Promise<void> {
  const key = nameOrId.toLowerCase();
  const rows = await readRows(account);
  const found = rows.filter(({ name, listed }) => name === key || listed.id.toLowerCase() === key);
  if (found.length === 0) {
    const known = rows.map(({ name, listed }) => name ?? listed.id);
    throw unknownName('subscription', nameOrId, known);
  }
  const gaps = await account.store.administration.gaps();
  const gapsOf = ({ name }: Row) => gaps.filter(({ subscription }) => subscription === name);
  const output = (row: Row) => ({ ...toOutput(row), gaps: gapsOf(row).map(gapOutput) });
  if (json) return printJson(io.stdout, found.map(output));
  const blocks = found.map((row) => details(row, gapsOf(row)));
  await printReport(io, { title: nameOrId, blocks });
}

async function readRows(account: OpenedAccount) {
  const { client, publicUrl, nowUs, administration } = account;
  const [listed, registrations, marks] = await Promise.all([
    client.list(),
    administration.registrations(),
    administration.deliveryMarks(),
  ]);
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations });
  return [...managed, [null, unmanaged] as const].flatMap(([name, subscriptions]) =>
    subscriptions.map((listed) => {
      const registration = registrations.find((each) => each.name === name);
      const lastDeliveryAtUs = name === null ? null : lastDeliveryOf(name, marks, nowUs());
      const known = { listed, registration, lastDeliveryAtUs, nowUs: nowUs() };
      return { name, listed, registration, lifetime: lifetimeOf(known) };
    }),
  );
}

/** Commands accept the id of a subscription that has no name here. */
const columns = [
  { title: 'name or id', value: ({ name, listed }: Row) => name ?? listed.id },
  { title: 'status', value: ({ listed }: Row) => listed.status },
  {
    ...{ title: 'notified (UTC)', drop: 1 },
    value: ({ listed }: Row) => report.time(listed.lastNotificationAtUs),
  },
  { title: 'events', drop: 2, value: ({ listed }: Row) => listed.events.join(',') },
  { title: 'type', drop: 3, value: ({ listed }: Row) => listed.type },
  { title: 'filter', grows: true, value: ({ listed }: Row) => filterText(listed.filter) },
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

function details({ name, listed, registration, lifetime }: Row, gaps: readonly Gap[]) {
  const who = registration?.changedByPerson ? ', changed by a person in the catalogue' : '';
  const pausesAtUs = listed.status === 'running' ? lifetime.pausesAtUs : null;
  return report.facts(
    ['name', name ?? '- (unmanaged)'],
    ['id', listed.id],
    ['status', `${listed.status}${who}`],
    ['type', listed.type],
    ['events', listed.events.join(', ')],
    ['filter', filterText(listed.filter)],
    ['endpoint', listed.endpoint],
    ['submitted (UTC)', report.time(listed.submittedAtUs)],
    ['last notification (UTC)', report.time(listed.lastNotificationAtUs)],
    ['automatic pause (UTC)', report.time(pausesAtUs)],
    ['automatic deletion (UTC)', report.time(lifetime.cancelsAtUs)],
    ...gaps.map(({ fromUs, toUs, reason }) => {
      const end = toUs === null ? 'now' : momentText(toUs);
      return ['gap', `${momentText(fromUs)} to ${end}: ${reason}`] as const;
    }),
  );
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
    await requireSubscription(name, io.reader, entries);
    if (json) {
      const shown = entries.map(({ atUs, ...rest }) => ({ at: formatDateUs(atUs), ...rest }));
      await printJson(io.stdout, shown);
    } else {
      const none = report.empty(`No changes${name === undefined ? '' : ` of ${name}`} yet.`);
      const block = entries.length === 0 ? none : historyTable(entries);
      await printReport(io, { title: 'History', blocks: [block] });
    }
  },
});

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

const actions = { resume: 'resumed', recreate: 'recreated', finish: 'finished' } as const;

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
  run: async (io: Io, { json, skipProbe = false }: { json?: true; skipProbe?: boolean }) => {
    const inFile = await loadSubscriptionsFile(io);
    const { maintain } = await import('../../admin/maintain.ts');
    const results = await withParts(io, ['account'], ({ account }) =>
      maintain(inFile, account, skipProbe),
    );
    await printResults(results, json, io);
  },
});

async function printResults(results: MaintenanceResult[], json: true | undefined, io: Io) {
  const shown = results.map(({ notes, ...rest }) => ({ ...rest, notes: notes.map(noteText) }));
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
