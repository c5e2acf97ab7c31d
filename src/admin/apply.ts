/**
 * Brings the account to the desired state: list the account, compare, send one request, and again, until nothing
 * differs. Safe to repeat after an interruption at any point: the store knows the desired state of each name and the ids
 * of what was created, and everything else is read from the account.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, isAppError } from '../core/terms/app-error.ts';
import { type DesiredSubscription, endpointFor } from '../core/terms/subscription.ts';
import type { HistoryAction, HistoryActor, Registration } from './account.ts';
import {
  type AccountContext,
  digestCredentials,
  drain,
  entryOf,
  isDigestOf,
  listAccount,
  nowRunning,
  observed,
  requireCredentials,
  statusEntry,
} from './changes.ts';
import {
  type ApplyOptions,
  type Difference,
  differencesOf,
  limitReached,
  nextRequest,
  type Plan,
  type PlanInput,
  type Request,
  sortAccount,
} from './differences.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

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
    ...{ ...options, ...account, publicUrl: context.publicUrl, limits: context.limits },
    hasCredentials: ({ credentialsDigest: digest }) =>
      context.credentials === null || isDigestOf(digest, context.credentials),
  });

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
  if (first.isTooLarge) throw limitReached(first.counts, context.limits);
  if (!options.onlyStatus && first.differences.some(({ desired }) => desired?.type === 'push'))
    requireCredentials(context);
  if (why.skipProbe !== true) await requireEndpoints(first.differences, context);
  const run: Run = {
    ...{ options, why },
    digest: context.credentials && digestCredentials(context.credentials, context.newSecret()),
    ...{ touched: new Set(), sent: new Set(), createdAtUs: new Map() },
    // An account that is already beyond the limits may stay there.
    context: {
      ...context,
      limits: {
        runningMax: Math.max(context.limits.runningMax, first.counts.running),
        totalMax: Math.max(context.limits.totalMax, first.counts.total),
      },
    },
  };
  try {
    for (let waits = 0; ; ) {
      const state = await applyNext(run);
      if (state === 'settled') return;
      if (state === 'sent') continue;
      // A list may be older than a confirmed request.
      if (waits === waitsMax) throw notApplied();
      waits += 1;
      await delay((context.listDelayMs ?? listDelayDefaultMs) * (1 + context.random()));
    }
  } catch (error) {
    throw interrupted(error, run);
  }
}

/** Lists, compares, and sends one request, unless the run has sent it before. */
async function applyNext(run: Run): Promise<'settled' | 'sent' | 'repeated'> {
  const { context, why, sent } = run;
  const account = await observe(context);
  const plan = planOf(run.options, account, context);
  if (!run.options.onlyStatus) await settle(plan.unchanged, account, run);
  if (plan.differences.length === 0) return 'settled';
  const { difference, request } = nextRequest(plan, context.limits);
  const target = 'current' in request ? request.current.id : null;
  const edit = 'edit' in request ? request.edit : null;
  const key = JSON.stringify([difference.name, request.kind, target, edit]);
  if (sent.has(key)) return 'repeated';
  why.onRequest?.(difference, request);
  await send(difference, request, account, run);
  sent.add(key);
  return 'sent';
}

/** State of one run. */
interface Run {
  options: ApplyOptions;
  context: AccountContext;
  why: ApplyReason;
  /** Digest of the credentials of the context; null without credentials. */
  digest: string | null;
  /** Names of which this run has or may have changed something. */
  touched: Set<string>;
  /** Keys of confirmed requests: none is sent twice. */
  sent: Set<string>;
  /** By name: the time before the request that created it. A replacement is not included: it is in effect at its end. */
  createdAtUs: Map<string, number>;
}

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

/** Sends one request. The desired state is in the store before it, and the result after it; of a status, both after it. */
async function send(
  difference: Difference,
  request: Request,
  { registrations }: Account,
  run: Run,
): Promise<void> {
  const { administration, nowUs } = run.context;
  const { name, desired } = difference;
  const known = registrations.find((one) => one.name === name);
  const save = desired === null ? undefined : registrationFor(desired, known, difference, run);
  const isStatus = run.options.onlyStatus === true;
  if (save !== undefined && request.kind !== 'record' && !isStatus)
    await administration.commit({ save });
  let done: Done;
  try {
    done = await sendRequest(difference, request, run);
  } catch (error) {
    const isRefused = isAppError(error, 'conflict') || isAppError(error, 'invalid');
    if (isRefused && save !== undefined && !run.touched.has(name)) {
      // Nothing was changed: the earlier desired state stays.
      await administration.commit(
        known === undefined ? { removeRegistration: name } : { save: known },
      );
    } else run.touched.add(name);
    throw error;
  }
  run.touched.add(name);
  const atUs = Math.min(done.atUs ?? nowUs(), nowUs());
  if (request.kind === 'create' && difference.old.length === 0) run.createdAtUs.set(name, atUs);
  // With the last subscription of a name goes its registration: otherwise, maintenance could recreate it.
  const isLast = request.kind === 'delete' && difference.old.length === 1;
  const isRemoved = desired === null && (request.kind === 'record' || isLast);
  await administration.commit({
    ...(save === undefined ? {} : { save: { ...save, ...done.fields } }),
    ...(desired === null ? { closeGaps: { subscription: name, toUs: nowUs() } } : {}),
    ...(isRemoved ? { removeRegistration: name } : {}),
    history: [entryOf({ name, id: done.id }, done.action, done.what, { ...run.why, atUs })],
  });
}

/** Result of a request. */
interface Done {
  /** Fields of the registration that it changes. */
  fields?: Partial<Registration>;
  id: string | null;
  action: HistoryAction;
  what: string;
  /** Time of the history entry; now by default. */
  atUs?: number;
}

/** Sends the request. Rejects as the client and the queues do. */
async function sendRequest(difference: Difference, request: Request, run: Run): Promise<Done> {
  if (request.kind === 'create') return create(request, difference, run);
  if (request.kind === 'edit') return edit(request, difference, run);
  if (request.kind === 'delete') return remove(request.current, difference, run);
  const { desired, current } = difference;
  if (desired === null) return { id: null, action: 'removed', what: 'no longer configured' };
  const id = current?.id ?? null;
  // A change that was interrupted stays unfinished.
  if (run.options.onlyStatus) return { id, ...statusEntry(desired.status) };
  return { fields: { unfinished: false }, id, action: 'adopted', what: 'no change needed' };
}

async function create(
  { desired, status }: Extract<Request, { kind: 'create' }>,
  { old, differs }: Difference,
  { context, digest }: Run,
): Promise<Done> {
  const { client, publicUrl, nowUs } = context;
  const { events, filter } = desired;
  const endpoint = endpointFor(publicUrl, desired);
  const address = endpoint === null ? null : { endpoint, credentials: requireCredentials(context) };
  // Pushes may come before the answer, and events are expected from here.
  const atUs = nowUs();
  const fresh = await client.create({ events, filter, status, address });
  if (fresh === null) {
    throw new AppError('unavailable', 'The response to the create request could not be read.');
  }
  const fields = {
    subscriptionId: fresh.id,
    credentialsDigest: address === null ? null : digest,
    notifiedAtUs: nowUs(),
    ...(status === 'running' ? nowRunning(atUs) : {}),
  };
  const replaces = `replaces ${old.map(({ id }) => id).join(', ')}: changed ${differs.join(' and ')}`;
  const what = old.length > 0 ? replaces : `status ${status}`;
  return { fields, id: fresh.id, action: 'created', what, atUs };
}

async function edit(
  { current, edit: { credentials, ...rest } }: Extract<Request, { kind: 'edit' }>,
  { name, adopted }: Difference,
  { context, digest }: Run,
): Promise<Done> {
  const { id } = current;
  const { status, endpoint } = rest;
  // The catalogue may refuse to read the queue of a paused subscription.
  if (status === 'paused') await drain(name, current, context);
  const beganAtUs = context.nowUs();
  await context.client.edit(id, {
    ...rest,
    ...(credentials && { credentials: requireCredentials(context) }),
  });
  const fields = {
    ...(credentials === undefined ? {} : { credentialsDigest: digest }),
    ...(status === 'running' ? nowRunning(beganAtUs) : {}),
  };
  if (status !== undefined) return { fields, id, ...statusEntry(status) };
  const what = [
    ...(endpoint === undefined ? [] : [`endpoint ${endpoint}`]),
    ...(credentials === undefined ? [] : ['new credentials']),
  ];
  return { fields, id, action: adopted ? 'adopted' : 'changed', what: what.join(', ') };
}

/** Deletes a subscription that is no longer configured or was replaced, or that a full account has no space for. */
async function remove(
  old: CatalogueSubscription,
  { name, desired, current, differs }: Difference,
  { context }: Run,
): Promise<Done> {
  await drain(name, old, context);
  await context.client.delete(old.id);
  const { id } = old;
  if (desired === null) return { id, action: 'deleted', what: 'no longer configured' };
  const what = differs.length === 0 ? 'duplicate' : `changed ${differs.join(' and ')}`;
  if (current !== null) return { id, action: 'replaced', what };
  const fields = { subscriptionId: null };
  return { fields, id, action: 'replaced', what: `${what}; the account is full: there is a gap` };
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
    ...{ activityAtUs: atUs, notifiedAtUs: atUs, changedByPerson: false },
    ...known,
    ...desired,
    unfinished: !options.onlyStatus || known?.unfinished === true,
    earlierIds: [...new Set(earlier)].filter((one) => one !== current?.id),
    origin: originOf({ name: desired.name, origin }, options),
    subscriptionId: current?.id ?? known?.subscriptionId ?? null,
    ...(adopted ? { credentialsDigest: null } : {}),
    // A new desired state replaces the change of a person.
    ...(why.actor === 'maintain' ? {} : { changedByPerson: false }),
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
    const message = `Nothing was changed, because the check of ${endpoint} failed: ${fault.message}`;
    const next =
      'To run all checks: `earshot doctor`. If the endpoint can be reached from the Internet but not from this machine, add --skip-probe.';
    throw new AppError('unavailable', message, { details: [fault.advice, next] });
  }
}

/** Adds how to continue to an error after the first change. */
function interrupted(error: unknown, { touched, options }: Run): unknown {
  const isWhole = touched.size === 0 || options.onlyStatus;
  if (!(error instanceof AppError) || error.code === 'cancelled' || isWhole) return error;
  const { prune } = options;
  const command = typeof prune === 'string' ? `subscriptions delete ${prune}` : 'register';
  const detail = `The change is not complete. To continue: \`earshot ${command}\`.`;
  return error.with({ details: [...error.details, detail] });
}

const notApplied = () =>
  new AppError('conflict', 'The catalogue confirmed a change, but the account still differs.', {
    advice: 'To show the differences: `earshot register --dry-run`.',
  });
