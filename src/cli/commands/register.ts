/** `earshot register`: makes the catalogue account hold the subscriptions that are wanted. */
import { InvalidArgumentError, Option } from 'commander';
import {
  applyPlan,
  limitsExceeded,
  type PreparedPlan,
  preparePlan,
} from '../../admin/apply-plan.ts';
import { desiredFromAccount, nameOf, type Plan } from '../../admin/plan.ts';
import { type CompleteAccountConfig, loadAccountConfig } from '../../config/config.ts';
import { loadSubscriptionsFile, subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { AppError } from '../../domain/app-error.ts';
import {
  type DesiredSubscription,
  defaultSubscriptionName,
  type RequestedStatus,
  requestedStatuses,
} from '../../domain/subscription.ts';
import { printable } from '../../domain/text.ts';
import type { OpenedAccount } from '../account.ts';
import { defineCommand, type Parts, withParts } from '../command.ts';
import { confirm, yesOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { painter, printJson, writeOut } from '../output.ts';
import { actionsOf, planText, stepJson } from '../plan-output.ts';
import {
  addSubscriptionFlags,
  describedTwice,
  filterOfFlags,
  refuseFilters,
  type SubscriptionFlags,
  showFilter,
} from '../register-filter.ts';

interface RegisterFlags extends SubscriptionFlags {
  status?: RequestedStatus;
  prune?: true;
  movedFrom?: string;
  dryRun?: true;
  check?: true;
  json?: true;
  yes?: true;
  skipProbe?: true;
  skipFilterCheck?: true;
}

export const registerCommand = defineCommand('register', {
  description: 'Make the catalogue account hold the subscriptions you want.',
  flags: (command) =>
    addSubscriptionFlags(command)
      .addOption(new Option('--status <status>', 'running or paused').choices(requestedStatuses))
      .option('--prune', 'delete those of ours that are no longer wanted')
      .option('--moved-from <url>', 'adopt those of an earlier EARSHOT_PUBLIC_URL', earlierUrl)
      .option('--dry-run', 'show the plan, change nothing')
      .option('--check', 'show the plan, change nothing, exit 3 when there is something to do')
      .option('--json', 'the plan as JSON: changes unchanged unwanted others applied')
      .addOption(yesOption())
      .option('--skip-probe', 'do not look at the endpoint first, which the catalogue advises')
      .option('--skip-filter-check', 'let the catalogue alone judge the filters'),
  help: `The subscriptions of ${subscriptionsFileName} are registered, if that file exists. Otherwise the flags
describe one subscription: its events, filter and status. What they leave out stays as it was
registered last; at first that is: created, every product, running. The flags of the filter are
joined by "and". Before anything is changed, the resulting filter is shown, and how many products
of the last week it matches.
Each change in --json: name, actions, id, wanted (events filter status endpoint), replaces, differs,
way.

A filter with errors is refused before anything is changed (see \`earshot filter check\`);
--skip-filter-check registers it as it is. What others made in the account is never touched. Needs
EARSHOT_PUBLIC_URL and the account's variables. The receiver must run, reachable over HTTPS.

Examples:
  $ earshot register --collection S2 --type S2MSI2A --area alps.geojson --cloud-below 20
  $ earshot register --event created,modified --filter "Collection/Name eq 'SENTINEL-2'"
  $ earshot register --subscription alps --collection S1 --bbox 5,45,11,48 --dry-run
  $ earshot register --dry-run          what would be done
  $ earshot register --check --json     for a monitor: exit code 3 on differences
  $ earshot register --prune --yes      delete what ${subscriptionsFileName} no longer names`,
  run: register,
});

/** Opens the account when flags, file and configuration have been checked. */
export async function register(io: Io, flags: RegisterFlags): Promise<void> {
  const file = await loadSubscriptionsFile(io.workingDir);
  const filter = filterOfFlags(flags, io);
  const { event, status, subscription } = flags;
  const isStated = [event, filter, status, subscription].some((flag) => flag !== undefined);
  if (file !== null && isStated) throw describedTwice();
  const readOnly = (flags.dryRun || flags.check) ?? false;
  if (flags.json && !(flags.yes || readOnly)) {
    throw new AppError('usage', '--json asks nothing: add --dry-run, --check or --yes.');
  }
  const config = loadAccountConfig(io);
  refuseTooMany(file ?? [], config);
  const withAccount = async ({ account }: Pick<Parts, 'account'>) => {
    const before = await remembered(account);
    const one = isStated ? stated(flags, filter, before) : null;
    const desired = file ?? (one === null ? before : [one]);
    if (desired.length === 0 && file === null) throw nothingWanted();
    warnOfMixedEvents(desired, io);
    if (filter?.trim() === '') {
      io.stderr.write(`${painter(io, io.stderr)('yellow', emptyFilter)}\n`);
    }
    const shown = filter === undefined || flags.json ? null : one;
    await planAndApply({ desired, shown, readOnly }, flags, account, config, io);
  };
  await withParts(io, ['account'], withAccount, { account: { readOnly } });
}

const emptyFilter =
  '--filter is empty: that is every product of the catalogue, tens of thousands a day.';

interface Desired {
  desired: readonly DesiredSubscription[];
  /** The one whose filter is printed, with a count of what it matches. */
  shown: DesiredSubscription | null;
  readOnly: boolean;
}

async function planAndApply(
  { desired, shown, readOnly }: Desired,
  flags: RegisterFlags,
  account: OpenedAccount,
  config: CompleteAccountConfig,
  io: Io,
): Promise<void> {
  const { movedFrom, prune = false, json = false } = flags;
  const prepared = await preparePlan({ desired, movedFrom, prune }, account);
  const { plan, limitErrors, listed } = prepared;
  const isChange = plan.steps.length > 0;
  if (!flags.skipFilterCheck) refuseFilters(desired, plan, io);
  if (isChange && shown !== null) await showFilter(shown, config.catalogueUrl, io);
  if (movedFrom !== undefined && !listed.some(({ endpoint }) => endpoint?.startsWith(movedFrom))) {
    io.stderr.write(`Nothing in the account delivers to ${movedFrom}.\n`);
  }
  const fault =
    flags.check && isChange
      ? new AppError('differences', 'The account is not as wanted.', {
          advice: '`earshot register` changes it.',
          details: limitErrors,
        })
      : limitErrors.length > 0
        ? limitsExceeded(prepared)
        : null;
  const applies = isChange && !readOnly && fault === null;
  if (!json) await showPlan(plan, { json, applied: false }, account, io);
  if (applies) await apply(prepared, flags, account, io);
  if (json) await showPlan(plan, { json, applied: applies }, account, io);
  if (fault !== null) throw fault;
}

async function apply(
  prepared: PreparedPlan,
  { yes, skipProbe }: RegisterFlags,
  account: OpenedAccount,
  io: Io,
): Promise<void> {
  await confirm(io, 'Apply this?', { yes });
  const paint = painter(io, io.stderr);
  if (skipProbe) io.stderr.write(`${paint('yellow', skippedProbe)}\n`);
  await applyPlan(prepared, await account.withCredentials(), {
    actor: 'register',
    skipProbe: skipProbe === true,
    onStep: (step) => {
      const action = actionsOf(step).join(', ');
      io.stderr.write(`${paint('cyan', '…')} ${action} ${printable(nameOf(step))}\n`);
    },
  });
  io.stderr.write(`${paint('green', 'Done.')} Listed again: the account is as wanted.\n`);
}

const skippedProbe =
  'The endpoint was NOT looked at. If it does not answer, the catalogue tries each notification three times and then loses it.';

async function showPlan(
  plan: Plan,
  { json, applied }: { json: boolean; applied: boolean },
  { limits, publicUrl }: OpenedAccount,
  io: Io,
): Promise<void> {
  if (!json) return writeOut(io.stdout, planText(plan, limits, painter(io, io.stdout)));
  const { steps, unchanged, obsolete, unmanaged } = plan;
  const changes = steps.map((step) => stepJson(step, publicUrl));
  const shown = { changes, unchanged, unwanted: obsolete, others: unmanaged.length, applied };
  await printJson(io.stdout, shown);
}

/** What the flags say; what they leave out is as it was registered last. */
function stated(
  { event, status, subscription: name = defaultSubscriptionName }: RegisterFlags,
  filter: string | undefined,
  before: readonly DesiredSubscription[],
): DesiredSubscription {
  const last = before.find((one) => one.name === name);
  // A name alone must not subscribe to every product.
  if (last === undefined && [event, filter, status].every((flag) => flag === undefined)) {
    throw nothingWanted();
  }
  return {
    name,
    events: event ?? last?.events ?? ['created'],
    filter: filter ?? last?.filter ?? '',
    status: status ?? last?.status ?? 'running',
  };
}

/** What was registered last; where nothing is remembered, what of ours the account holds. */
async function remembered(account: OpenedAccount): Promise<DesiredSubscription[]> {
  const { administration, client, publicUrl } = account;
  const registrations = await administration.registrations();
  if (registrations.length === 0) return desiredFromAccount(await client.list(), publicUrl);
  return registrations.map(({ name, events, filter, status }) => ({
    name,
    events,
    filter,
    status,
  }));
}

function nothingWanted(): AppError {
  return new AppError('usage', 'No subscription is described.', {
    advice: `Add flags, such as --event created,modified --collection S2 --bbox 5,45,11,48 or --filter "…", or write ${subscriptionsFileName}. For every product: --event created.`,
  });
}

/** Known without asking anybody. */
function refuseTooMany(
  desired: readonly DesiredSubscription[],
  { limits: { runningMax, totalMax } }: CompleteAccountConfig,
): void {
  const running = desired.filter(({ status }) => status === 'running').length;
  const problems: string[] = [];
  if (running > runningMax) {
    problems.push(
      `It wants ${running} running; the catalogue lets ${runningMax} run. Give the others status: 'paused'.`,
    );
  }
  if (desired.length > totalMax) {
    problems.push(`It names ${desired.length}; the catalogue allows ${totalMax} for an account.`);
  }
  if (problems.length === 0) return;
  throw new AppError('configuration', `${subscriptionsFileName} wants more than there can be.`, {
    details: problems,
  });
}

/** Facts, catalogue 1.3: deleted stands alone in the documented combinations, with a filter language of its own. */
function warnOfMixedEvents(desired: readonly DesiredSubscription[], io: Io): void {
  for (const { name, events } of desired) {
    if (!events.includes('deleted') || events.length === 1) continue;
    io.stderr.write(
      `${painter(io, io.stderr)('yellow', `"${name}" wants deleted beside other events`)}: the catalogue documents deleted only by itself, as its filters speak of other fields. Two subscriptions are safer.\n`,
    );
  }
}

function earlierUrl(text: string): string {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return url.origin;
  throw new InvalidArgumentError('Use the URL as it was, such as https://old.example.org:8443.');
}
