/**
 * Brings the account to the desired state: list the account, compare, send one request, and again, until nothing
 * differs. Safe to repeat after an interruption at any point: the store knows the desired state of each name and the ids
 * of what was created, and everything else is read from the account.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, isAppError } from '../core/terms/app-error.ts';
import { type DesiredSubscription, endpointFor } from '../core/terms/subscription.ts';
import type { HistoryActor, Registration } from './account.ts';
import {
  type AccountContext,
  digestCredentials,
  entryOf,
  isDigestOf,
  listAccount,
  observed,
} from './account-context.ts';
import {
  type AccountLimits,
  type Difference,
  differencesOf,
  nextRequest,
  type Plan,
  type PlanInput,
  type Request,
  sortAccount,
} from './differences.ts';
import { sendRequest } from './requests.ts';

export interface ApplyOptions {
  desired: readonly DesiredSubscription[];
  /** Names of `desired` that are configured in the file; undefined if the origins do not change. */
  namesInFile?: ReadonlySet<string>;
  prune?: boolean;
  /** By default true. Maintenance adopts nothing without a decision of the user. */
  adoptsPull?: boolean;
  hasCredentials?: PlanInput['hasCredentials'];
}

/** Why an account is changed, and how its endpoint is checked. */
export interface ApplyReason {
  actor: HistoryActor;
  /** Reason in the history, in addition to what a request does. */
  reason?: string;
  skipProbe?: boolean;
  onRequest?: (difference: Difference, request: Request) => void;
}

/** Lists the account and compares it with the desired state; changes nothing. */
export async function readPlan(options: ApplyOptions, context: AccountContext): Promise<Plan> {
  const [listed, registrations] = await Promise.all([
    context.client.list(),
    context.administration.registrations(),
  ]);
  return planOf(options, { listed, registrations }, context);
}

type Account = Pick<PlanInput, 'listed' | 'registrations'>;

const planOf = (options: ApplyOptions, account: Account, context: AccountContext) =>
  differencesOf({
    ...account,
    desired: options.desired,
    publicUrl: context.publicUrl,
    adoptsPull: options.adoptsPull ?? true,
    namesInFile: options.namesInFile,
    prune: options.prune === true,
    limits: context.limits,
    hasCredentials: options.hasCredentials ?? knowsCredentials(context),
  });

/** Each digest takes 10 ms, so it is compared once. */
function knowsCredentials({ credentials }: AccountContext): PlanInput['hasCredentials'] {
  const known = new Map<string | null, boolean>();
  return ({ credentialsDigest: digest }) => {
    const isKnown = known.get(digest) ?? isDigestOf(digest, credentials);
    known.set(digest, isKnown);
    return isKnown;
  };
}

/** Requests per name after which a catalogue that confirms, but does not apply, is reported. */
const requestsMax = 12;

/** Attempts to create a subscription without an answer. */
const attemptsMax = 3;

const listDelayDefaultMs = 1_500;

/** Repeated lists in a run that are older than a confirmed request. */
const waitsMax = 3;

/**
 * Applies the desired state. Rejects with `conflict` if a limit is exceeded (nothing was changed then) or if the
 * catalogue confirms a request without applying it, with `unavailable` if the endpoint does not answer as the catalogue
 * requires, and as the client does. After any error, a repetition continues from what is there.
 */
export async function applyDesired(
  options: ApplyOptions,
  context: AccountContext,
  why: ApplyReason,
): Promise<void> {
  const first = await readPlan(options, context);
  if (first.limitErrors.length > 0) throw limitsExceeded(first, options);
  if (why.skipProbe !== true) await requireEndpoints(first.differences, context);
  const run = newRun(options, context, why, first);
  try {
    for (let left = requestsMax * (first.differences.length + 1); left > 0; left -= 1) {
      if (await applyNext(run)) return;
    }
    throw notApplied();
  } catch (error) {
    throw interrupted(error, run);
  }
}

/** Lists, compares, and sends one request. Resolves with true when nothing differs. */
async function applyNext(run: Run): Promise<boolean> {
  const { context, why, limits } = run;
  const account = await observe(context);
  const plan = planOf(run.options, account, { ...context, limits });
  await settle(plan.unchanged, account, run);
  if (plan.differences.length === 0) return true;
  const { difference, request } = nextRequest(plan, limits);
  const { name } = difference;
  const key = JSON.stringify([name, { ...request, current: idOf(request) }]);
  if (key === run.last || (request.kind === 'create' && run.createdAtUs.has(name))) {
    // A list may be older than a confirmed request.
    if (run.waits === waitsMax) throw notApplied(name);
    run.waits += 1;
    await pauseBeforeList(context);
    return false;
  }
  why.onRequest?.(difference, request);
  try {
    await send(difference, request, account, run);
    run.last = key;
  } catch (error) {
    // What a pull creation without an answer has made is found by adoption only.
    const isFound = difference.desired?.type === 'push' || run.options.adoptsPull !== false;
    const isOpen = request.kind === 'create' && isFound && isAppError(error, 'unavailable');
    if (!isOpen || run.attempts === attemptsMax) throw error;
    run.attempts += 1;
    // A request without an answer may still be in progress.
    await pauseBeforeList(context);
  }
  return false;
}

const pauseBeforeList = ({ listDelayMs = listDelayDefaultMs, random }: AccountContext) =>
  delay(listDelayMs * (1 + random()));

/** State of one run. */
interface Run {
  options: ApplyOptions;
  context: AccountContext;
  why: ApplyReason;
  /** Digest of the credentials of the context. */
  digest: string;
  /** The limits, or the counts of an account that is already beyond them. */
  limits: AccountLimits;
  /** By name: the registration before the run. */
  before: Map<string, Registration | undefined>;
  /** Names of which this run has changed something. */
  changed: Set<string>;
  /** Key of the last confirmed request. */
  last: string;
  attempts: number;
  waits: number;
  /** By name: the time before the request that created it; null for a replacement, which is in effect at its end. */
  createdAtUs: Map<string, number | null>;
}

function newRun(
  options: ApplyOptions,
  context: AccountContext,
  why: ApplyReason,
  first: Plan,
): Run {
  return {
    options: { ...options, hasCredentials: knowsCredentials(context) },
    ...{ context, why, digest: digestCredentials(context.credentials, context.newSecret()) },
    ...{ before: new Map(), changed: new Set(), createdAtUs: new Map() },
    ...{ last: '', attempts: 1, waits: 0 },
    limits: {
      runningMax: Math.max(context.limits.runningMax, first.counts.running),
      totalMax: Math.max(context.limits.totalMax, first.counts.total),
    },
  };
}

const idOf = (request: Request) => ('current' in request ? request.current.id : undefined);

/** Lists the account, and records which subscriptions run: from this, gaps are opened and closed. */
async function observe(context: AccountContext): Promise<Account> {
  const { administration, publicUrl } = context;
  const { listed, askedAtUs } = await listAccount(context);
  const registrations = await administration.registrations();
  const { managed } = sortAccount(listed, { publicUrl, registrations });
  for (const registration of registrations) {
    const seen = observed(registration, managed.get(registration.name) ?? [], askedAtUs, context);
    await administration.commit(seen);
  }
  return { listed, registrations: await administration.registrations() };
}

/** Records that nothing differs any more. */
async function settle(
  names: readonly string[],
  { registrations }: Account,
  { options, context, why, createdAtUs }: Run,
): Promise<void> {
  for (const one of registrations.filter(({ name }) => names.includes(name))) {
    const origin = originOf(one, options);
    const changedByPerson = one.changedByPerson && why.actor !== 'register';
    const isSettled = !one.unfinished && one.origin === origin;
    if (isSettled && one.changedByPerson === changedByPerson) continue;
    const save = { ...one, unfinished: false, origin, earlierIds: [], changedByPerson };
    const definedAtUs = createdAtUs.get(one.name) ?? context.nowUs();
    await context.administration.commit({ save, definedAtUs });
  }
}

function originOf(
  { name, origin }: Pick<Registration, 'name' | 'origin'>,
  { namesInFile }: ApplyOptions,
) {
  if (namesInFile === undefined) return origin;
  return namesInFile.has(name) ? 'file' : 'flags';
}

/** Sends one request. The desired state is in the store before it, and the result after it. */
async function send(
  difference: Difference,
  request: Request,
  { registrations }: Account,
  run: Run,
): Promise<void> {
  const { administration, nowUs } = run.context;
  const { name, desired } = difference;
  const known = registrations.find((one) => one.name === name);
  if (!run.before.has(name)) run.before.set(name, known);
  const save = desired === null ? undefined : registrationFor(desired, known, difference, run);
  if (save !== undefined && request.kind !== 'record') await administration.commit({ save });
  try {
    const { fields = {}, ...done } = await sendRequest(difference, request, run);
    run.changed.add(name);
    const atUs = Math.min(done.atUs ?? nowUs(), nowUs());
    if (request.kind === 'create') {
      run.createdAtUs.set(name, difference.old.length === 0 ? atUs : null);
    }
    await administration.commit({
      ...(save === undefined ? {} : { save: { ...save, ...fields } }),
      ...(desired === null ? { closeGaps: { subscription: name, toUs: nowUs() } } : {}),
      ...(done.action === 'removed' ? { removeRegistration: name } : {}),
      history: [entryOf({ name, id: done.id }, done.action, done.what, { ...run.why, atUs })],
    });
  } catch (error) {
    // After a request without an answer, a conflict may come from what that request has created.
    const isConflict = run.attempts === 1 && isAppError(error, 'conflict');
    const isRefused = isConflict || isAppError(error, 'invalid');
    if (isRefused && save !== undefined && !run.changed.has(name)) {
      // Nothing was changed: the earlier desired state stays.
      const before = run.before.get(name);
      await administration.commit(
        before === undefined ? { removeRegistration: name } : { save: before },
      );
    }
    throw error;
  }
}

/** Returns the registration of a change that is not complete. */
function registrationFor(
  desired: DesiredSubscription,
  known: Registration | undefined,
  { current, old, adopted }: Difference,
  { options, context, why }: Run,
): Registration {
  const found = current ?? old[0];
  const atUs = found?.lastNotificationAtUs ?? found?.submittedAtUs ?? context.nowUs();
  const origin = known?.origin ?? 'flags';
  const earlier = [...old.map((one) => one.id), ...(known?.earlierIds ?? [])];
  if (known?.subscriptionId) earlier.push(known.subscriptionId);
  return {
    ...{ credentialsDigest: null, runningSeenAtUs: null, pausedSeenAtUs: null },
    ...{ activityAtUs: atUs, notifiedAtUs: atUs, changedByPerson: false, reported: [] },
    ...known,
    ...desired,
    unfinished: true,
    earlierIds: [...new Set(earlier)].filter((one) => one !== current?.id),
    origin: originOf({ name: desired.name, origin }, options),
    subscriptionId: current?.id ?? known?.subscriptionId ?? null,
    ...(adopted ? { credentialsDigest: null } : {}),
    // A new desired state replaces the change of a person, and problems may be reported again.
    ...(why.actor === 'maintain' ? {} : { changedByPerson: false, reported: [] }),
  };
}

/** Specification, "What the service does", 5: a GET must return 200 before a subscription is created. */
async function requireEndpoints(
  differences: readonly Difference[],
  { probe, publicUrl, credentials }: AccountContext,
): Promise<void> {
  for (const { desired, current, edit: changes } of differences) {
    const isNew = current === null || changes.endpoint !== undefined || changes.credentials;
    const endpoint = desired !== null && isNew ? endpointFor(publicUrl, desired) : null;
    if (endpoint === null) continue;
    const { fault } = await probe(endpoint, credentials);
    if (fault === null) continue;
    throw new AppError(
      'unavailable',
      `Nothing was changed, because the check of ${endpoint} failed: ${fault.message}`,
      {
        details: [
          fault.advice,
          'To run all checks: `earshot doctor`. If the endpoint can be reached from the Internet but not from this machine, add --skip-probe.',
        ],
      },
    );
  }
}

/** Returns the error `conflict` for a plan that the limits of the account do not permit. */
export function limitsExceeded(
  { limitErrors, obsolete }: Plan,
  { prune = false, namesInFile }: Pick<ApplyOptions, 'prune' | 'namesInFile'>,
): AppError {
  const unused = `No longer configured: ${obsolete.join(', ')}. To delete: \`earshot register --prune\`.`;
  return new AppError(
    'conflict',
    'The limits of the account do not permit the desired state. Nothing was changed.',
    {
      details: [
        ...limitErrors,
        ...(prune || namesInFile === undefined || obsolete.length === 0 ? [] : [unused]),
        "Pause or delete a subscription (`earshot subscriptions`), or register the new one with --status paused. If the catalogue's limits have changed, set EARSHOT_SUBSCRIPTIONS_RUNNING_MAX and EARSHOT_SUBSCRIPTIONS_MAX.",
      ],
    },
  );
}

/** Adds how to continue to an error after the first change. */
function interrupted(error: unknown, { changed }: Run): unknown {
  if (!(error instanceof AppError) || error.code === 'cancelled' || changed.size === 0)
    return error;
  const detail = 'The change is not complete. To continue: `earshot register`.';
  return error.with({ details: [...error.details, detail] });
}

function notApplied(name = 'the subscriptions'): AppError {
  return new AppError(
    'conflict',
    `The catalogue confirmed the change of ${name}, but the account still differs.`,
    { advice: 'To show the differences: `earshot register --dry-run`.' },
  );
}
