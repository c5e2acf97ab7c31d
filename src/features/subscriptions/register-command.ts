/** `earshot register`: applies the desired subscriptions to the catalogue account. */
import { Option } from 'commander';
import type { Registration } from '../../admin/account.ts';
import { applyDesired, readPlan } from '../../admin/apply.ts';
import {
  type AccountLimits,
  type ApplyOptions,
  type Difference,
  limitReached,
  type Plan,
  type ReplacementWay,
} from '../../admin/differences.ts';
import type { OpenedAccount } from '../../admin/open-account.ts';
import {
  type CompleteAccountConfig,
  loadAccountConfig,
  needsEndpoint,
} from '../../admin/settings.ts';
import { defineCommand, type Parts, withParts } from '../../core/cli/command.ts';
import { confirm, dryRunOption, jsonOption, yesOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { painter, printJson, writeOut } from '../../core/cli/output.ts';
import {
  loadSubscriptionsFile,
  subscriptionsFileName,
} from '../../core/config/subscriptions-file.ts';
import { AppError } from '../../core/terms/app-error.ts';
import {
  type DesiredSubscription,
  defaultSubscriptionName,
  endpointFor,
  filterText,
  type RequestedStatus,
  requestedStatuses,
  requirePublicUrl,
} from '../../core/terms/subscription.ts';
import { momentText, printable } from '../../core/terms/text.ts';
import {
  addSubscriptionFlags,
  describedTwice,
  filterOfFlags,
  refuseFilters,
  type SubscriptionFlags,
  showFilter,
} from './register-filter.ts';

interface RegisterFlags extends SubscriptionFlags {
  /** Asks despite `yes`, unless all changes are new subscriptions: another program may read an existing queue. */
  asksAgain?: boolean;
  status?: RequestedStatus;
  prune?: true;
  dryRun?: true;
  check?: true;
  json?: true;
  yes?: true;
  skipProbe?: true;
  skipFilterCheck?: true;
}

export const registerCommand = defineCommand('register', {
  description: 'Create, change or delete subscriptions in the catalogue, as configured.',
  flags: (command) =>
    addSubscriptionFlags(command)
      .addOption(
        new Option('--status <status>', 'status of the subscription').choices(requestedStatuses),
      )
      .option('--prune', 'delete managed subscriptions that are no longer configured')
      .addOption(dryRunOption())
      .option(
        '--check',
        'exit with code 3 if there is a problem (the account differs from the configuration; --check changes nothing)',
      )
      .addOption(jsonOption())
      .addOption(yesOption())
      .option('--skip-probe', 'skip the check of the endpoint')
      .option('--skip-filter-check', 'skip the check of the filters'),
  help: `The command registers the subscriptions of ${subscriptionsFileName}, and the one that the flags
describe. The defaults of a new subscription are created events, all products and the status
running. For a registered subscription, missing flags keep the registered values. A subscription
that was registered with flags stays configured until \`earshot subscriptions delete\`.

Before the prompt, the command shows the plan, the filter, and the number of products that matched
the filter in the last week. An invalid filter is refused. Unmanaged subscriptions are never
changed. The command needs the EARSHOT_ACCOUNT_ variables. For push, the receiver must also be
reachable over HTTPS at EARSHOT_PUBLIC_URL; --pull needs no public address.

Fields of --json: changes, unchanged, obsolete, others, applied.
  changes    list of changes with name, actions, id, desired, replaces, differs and way
  desired    desired state of the subscription
  replaces   ids of the old subscriptions
  differs    reasons of the replacement: type, filter, events
  way        method of the replacement: overlap has no gap, switch has a short gap, delete-first
             has a gap until the new subscription runs
  obsolete   names of managed subscriptions that are no longer configured
  others     number of unmanaged subscriptions

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 the account differs (--check).

Examples:
  $ earshot register --collection S2 --type S2MSI2A --area alps.geojson --cloud-below 20  by flags
  $ earshot register --dry-run          show the plan
  $ earshot register --check --json     check from a monitoring program
  $ earshot register --prune --yes      delete subscriptions that are not configured`,
  run: register,
});

const isReadOnly = ({ dryRun, check }: RegisterFlags) => dryRun === true || check === true;

/** Opens the account after flags, file and configuration have been checked. */
export async function register(io: Io, flags: RegisterFlags): Promise<void> {
  const file = await loadSubscriptionsFile(io);
  const filter = filterOfFlags(flags, io);
  const { event, status, subscription, pull, push } = flags;
  const isStated = [event, filter, status, subscription, pull, push].some(
    (flag) => flag !== undefined,
  );
  const { name = defaultSubscriptionName } = { name: subscription };
  if (isStated && file?.some((one) => one.name === name)) throw describedTwice(name);
  const readOnly = isReadOnly(flags);
  if (flags.json && !(flags.yes || readOnly)) {
    throw new AppError(
      'usage',
      'With --json, there is no prompt. Add --dry-run, --check or --yes.',
    );
  }
  const inFile = file?.some(({ type }) => type === 'push');
  const publicUrl = !pull && (push === true || (inFile ?? needsEndpoint(io)));
  const config = loadAccountConfig(io, { publicUrl });
  const withAccount = async ({ account }: Pick<Parts, 'account'>) => {
    const known = await account.administration.registrations();
    const one = isStated ? describedByFlags(flags, filter, known) : null;
    const desired = desiredOf(file, one, known);
    if (desired.length === 0 && file === null) throw nothingDescribed();
    if (desired.some(({ type }) => type === 'push')) requirePublicUrl(account.publicUrl);
    warnOfMixedEvents(desired, io);
    const shown = filter === undefined || flags.json ? null : one;
    const namesInFile = file === null ? undefined : new Set(file.map((entry) => entry.name));
    const options = { desired, ...(namesInFile && { namesInFile }), prune: flags.prune === true };
    await planAndApply(options, shown, flags, account, config, io);
  };
  await withParts(io, ['account'], withAccount, { account: { readOnly, publicUrl } });
}

/**
 * Returns the subscriptions to apply: the one of the flags; else those of the file and those that flags registered.
 * Without a file, a registered one stays configured, wherever it came from.
 */
function desiredOf(
  file: readonly DesiredSubscription[] | null,
  one: DesiredSubscription | null,
  known: readonly Registration[],
): readonly DesiredSubscription[] {
  if (one !== null) return [one];
  const inFile = file ?? [];
  const kept = known.filter(
    ({ name, origin }) =>
      (file === null || origin === 'flags') && !inFile.some((entry) => entry.name === name),
  );
  const stored = kept.map(({ name, type, events, filter, status }) => ({
    ...{ name, type, events, filter, status },
  }));
  return [...inFile, ...stored];
}

/** Prints `shown` with the number of matches of its filter. */
async function planAndApply(
  options: ApplyOptions,
  shown: DesiredSubscription | null,
  flags: RegisterFlags,
  account: OpenedAccount,
  config: CompleteAccountConfig,
  io: Io,
): Promise<void> {
  const plan = await readPlan(options, account);
  const isChange = plan.differences.length > 0;
  if (!flags.skipFilterCheck) refuseFilters(options.desired, plan, io);
  if (isChange && shown !== null) await showFilter(shown, config.catalogueUrl, io);
  const { counts, obsolete, isTooLarge } = plan;
  const unused = options.prune || options.namesInFile === undefined ? [] : obsolete;
  const fault =
    flags.check && isChange
      ? new AppError('differences', 'The account differs from the desired state.', {
          advice: 'To apply the changes: `earshot register`.',
        })
      : isTooLarge
        ? limitReached(counts, account.limits, unused)
        : null;
  const applies = !isReadOnly(flags) && fault === null;
  const { limits, publicUrl } = account;
  if (!flags.json) await writeOut(io.stdout, planText(plan, limits, painter(io, io.stdout)));
  if (applies) await apply(plan, options, flags, account, io);
  if (flags.json) {
    const changes = plan.differences.map((one) => differenceJson(one, publicUrl));
    const { unchanged, unmanaged } = plan;
    const rest = { unchanged, obsolete, others: unmanaged.length, applied: applies && isChange };
    await printJson(io.stdout, { changes, ...rest });
  }
  if (fault !== null) throw fault;
}

/** Applies the plan after a prompt. Without differences, only the origins of the subscriptions are stored. */
async function apply(
  { differences }: Plan,
  options: ApplyOptions,
  { yes, skipProbe, asksAgain = false }: RegisterFlags,
  account: OpenedAccount,
  io: Io,
): Promise<void> {
  const isNew = differences.every(({ current, old }) => current === null && old.length === 0);
  const isChange = differences.length > 0;
  if (isChange) await confirm(io, 'Apply these changes?', asksAgain && !isNew ? {} : { yes });
  const paint = painter(io, io.stderr);
  if (isChange && skipProbe) io.stderr.write(`${paint('yellow', skippedProbe)}\n`);
  await applyDesired(options, account, {
    actor: 'register',
    skipProbe: skipProbe === true,
    onRequest: ({ name }, { kind }) => {
      if (kind !== 'record') io.stderr.write(`${paint('cyan', '…')} ${kind} ${printable(name)}\n`);
    },
  });
  if (isChange) {
    io.stderr.write(`${paint('green', 'Done.')} The account matches the desired state.\n`);
  }
}

const skippedProbe =
  'The endpoint was not checked. If the endpoint does not answer, the catalogue retries each notification three times and then drops it.';

/** Subscription of the flags; missing ones keep the last registered value. */
function describedByFlags(
  { event, status, pull, push, subscription: name = defaultSubscriptionName }: RegisterFlags,
  filter: string | undefined,
  before: readonly DesiredSubscription[],
): DesiredSubscription {
  const last = before.find((one) => one.name === name);
  // A name alone must not subscribe to all products.
  if (
    last === undefined &&
    [event, filter, status, pull, push].every((flag) => flag === undefined)
  ) {
    throw nothingDescribed();
  }
  return {
    name,
    type: pull ? 'pull' : push ? 'push' : (last?.type ?? 'push'),
    events: event ?? last?.events ?? ['created'],
    filter: filter ?? last?.filter ?? '',
    status: status ?? last?.status ?? 'running',
  };
}

function nothingDescribed(): AppError {
  return new AppError('usage', 'No subscription is described.', {
    advice: `Add flags, such as --collection S2 --bbox 5,45,11,48 or --filter "…", or create ${subscriptionsFileName}. For all products: --event created.`,
  });
}

/** Facts, catalogue 1.3: the catalogue documents deleted only alone, with filter fields of its own. */
function warnOfMixedEvents(desired: readonly DesiredSubscription[], io: Io): void {
  for (const { name, events } of desired) {
    if (!events.includes('deleted') || events.length === 1) continue;
    io.stderr.write(
      `${painter(io, io.stderr)('yellow', `"${name}" combines deleted with other events`)}: according to the documentation of the catalogue, a subscription with deletions has no other events, and its filter uses other fields. Use two subscriptions instead.\n`,
    );
  }
}

type Paint = ReturnType<typeof painter>;

/** Effect of each way to replace a subscription. */
const ways: Record<ReplacementWay, string> = {
  overlap:
    'the new subscription starts before the old one is deleted: no gap, but possible duplicates',
  switch:
    'the new subscription is created as paused and then replaces the old one; the short gap is recorded',
  'delete-first':
    'the account is full, so the old subscription is deleted before the new one is created; the gap is recorded',
};

/** Actions of a difference: `replace`, `resume, change credentials`, … */
function actionsOf({ desired, current, edit, old, adopted }: Difference): string[] {
  if (desired === null) return [old.length > 0 ? 'delete' : 'remove'];
  if (current === null) return [old.length > 0 ? 'replace' : 'create'];
  return [
    ...(old.length > 0 ? ['replace'] : []),
    ...(adopted || Object.keys(edit).length + old.length === 0 ? ['adopt'] : []),
    ...(edit.status === undefined ? [] : [edit.status === 'running' ? 'resume' : 'pause']),
    ...(edit.endpoint === undefined ? [] : ['change endpoint']),
    ...(edit.credentials === undefined ? [] : ['change credentials']),
  ];
}

/** Formats the plan with one block per subscription, and a last line with the account limits. */
export function planText(plan: Plan, limits: AccountLimits, paint: Paint): string {
  const { differences, unchanged, obsolete, unmanaged, counts } = plan;
  const pruned = differences.flatMap(({ name, desired }) => (desired === null ? [name] : []));
  const kept = obsolete.filter((name) => !pruned.includes(name)).map(printable);
  const others = unmanaged.length === 0 ? '' : `; ${unmanaged.length} unmanaged (never changed)`;
  const total = `  Subscriptions: ${counts.running} of ${limits.runningMax} running, ${counts.total} of ${limits.totalMax} in total${others}.`;
  return [
    ...differences.flatMap((one) => differenceLines(one, paint)),
    ...(unchanged.length === 0
      ? []
      : [`${paint('green', '=')} unchanged: ${unchanged.join(', ')}`]),
    ...(kept.length === 0
      ? []
      : [`${paint('yellow', '!')} not configured, kept: ${kept.join(', ')}  (to delete: --prune)`]),
    ...[paint('dim', total), ''],
  ].join('\n');
}

/** Converts a difference to the JSON fields that the command documents. */
export function differenceJson(one: Difference, publicUrl: string | null) {
  const { name, desired, current, old, differs, way } = one;
  const base = { name, actions: actionsOf(one), id: (current ?? old[0])?.id ?? null };
  if (desired === null) return base;
  const { type, events, filter, status } = desired;
  const state = { type, events, filter, status, endpoint: endpointFor(publicUrl, desired) };
  if (old.length === 0) return { ...base, desired: state };
  return { ...base, desired: state, replaces: old.map(({ id }) => id), differs, way };
}

const signs = {
  removed: (paint: Paint) => paint('red', '-'),
  added: (paint: Paint) => paint('green', '+'),
  changed: (paint: Paint) => paint('yellow', '~'),
};

/** Lists a new or removed value once, a changed one twice, and an unchanged one not at all. */
function differenceLines(one: Difference, paint: Paint): string[] {
  const { name, desired, current, edit, old, way, adopted } = one;
  const before = current ?? old[0] ?? null;
  const kind = desired === null ? 'removed' : before === null ? 'added' : 'changed';
  const line = (label: string, value: string) => `${label.padEnd(8)}  ${printable(value)}`;
  const changed = (label: string, from: string | undefined, to: string | undefined) => {
    if (from === to) return [];
    if (from === undefined || to === undefined) return [line(label, from ?? to ?? '')];
    return [paint('red', `- ${line(label, from)}`), paint('green', `+ ${line(label, to)}`)];
  };
  const [from, to] = [valuesOf(before), valuesOf(desired)];
  const lines = [
    ...(current === null ? [] : [line('id', current.id)]),
    ...(old.length === 0
      ? []
      : [line(current === null ? 'id' : 'deletes', old.map(({ id }) => id).join(', '))]),
    ...['type', 'events', 'filter', 'status'].flatMap((key) => changed(key, from[key], to[key])),
    ...(edit.endpoint ? changed('endpoint', current?.endpoint ?? '', edit.endpoint) : []),
    ...(adopted && desired?.type === 'pull' ? queueNotes(before?.lastNotificationAtUs) : []),
    ...(old.length > 0 && desired !== null ? [paint('dim', ways[way])] : []),
  ];
  const head = `${signs[kind](paint)} ${actionsOf(one).join(', ').padEnd(9)} ${paint('bold', printable(name))}`;
  return [head, ...lines.map((text) => `    ${text}`)];
}

function valuesOf(
  one: { type: string; events: readonly string[]; filter: string; status: string } | null,
): Readonly<Record<string, string>> {
  if (one === null) return {};
  const { type, events, filter, status } = one;
  return { type, status, events: events.join(', '), filter: filterText(filter) };
}

/** The other reader of an adopted queue, if there is one, would miss what earshot acknowledges. */
const queueNotes = (lastUs: number | null | undefined) => [
  ...(lastUs == null ? [] : [`it was last read at ${momentText(lastUs)}`]),
  'earshot reads and acknowledges its queue: no other program may read this subscription',
];
