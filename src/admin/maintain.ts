/** Maintenance: resumes and recreates subscriptions that the catalogue stopped automatically, and reports. */
import type { AdministrationChange, DeliveryMark, Registration } from '../domain/account.ts';
import { AppError, errorText } from '../domain/app-error.ts';
import type { DesiredSubscription } from '../domain/subscription.ts';
import { applyPlan, preparePlan } from './apply-plan.ts';
import { applyStep } from './apply-step.ts';
import { requireRunningSlot, sortAccount } from './plan.ts';
import {
  type AccountContext,
  digestCredentials,
  gapOf,
  historyEntry,
  listAccount,
  seenRunning,
} from './plan-context.ts';
import { type Note, noteText, type Review, review, unfinishableCode } from './review.ts';

/** Result of a round for one subscription. */
export interface MaintenanceResult {
  name: string;
  /** Status in the catalogue before the round: running, paused, gone, or an unknown one. */
  status: string;
  /** The action that was taken; null for none. */
  did: Review['action'];
  notes: Note[];
  /** True when the previous round did not report one of the notes. */
  hasNewNotes: boolean;
  /** Error of the action; null without one. */
  failure: string | null;
}

export interface MaintenanceOptions {
  /** Recreates without a check of the endpoint. */
  skipProbe?: boolean;
  /** Subscriptions in `earshot.config.ts`; null without the file. */
  inFile: readonly DesiredSubscription[] | null;
}

/**
 * Runs one round; without registrations, sends no request. Rejects when the account cannot be listed.
 * The failure of one subscription is in its result and does not affect the others.
 */
export async function maintain(
  options: MaintenanceOptions,
  context: AccountContext,
): Promise<MaintenanceResult[]> {
  const { inFile } = options;
  const registrations = await context.administration.registrations();
  if (registrations.length === 0) return [];
  const { listed, askedAtUs } = await listAccount(context);
  const marks = await context.administration.deliveryMarks();
  const { managed } = sortAccount(listed, { publicUrl: context.publicUrl, registrations });
  const results: MaintenanceResult[] = [];
  for (const registration of registrations) {
    const { name } = registration;
    const reviewed = review({
      registration,
      inFile: inFile === null ? undefined : (inFile.find((one) => one.name === name) ?? null),
      candidates: managed.get(name) ?? [],
      lastDeliveryAtUs: lastDeliveryOf(name, marks, context.nowUs()),
      nowUs: context.nowUs(),
      publicUrl: context.publicUrl,
    });
    results.push(await settle(registration, reviewed, { ...options, listed, askedAtUs }, context));
  }
  return results;
}

/**
 * Returns the time of the last delivery to a subscription's path, with any credentials. Ignores times in
 * the future, from a clock that was ahead.
 */
export function lastDeliveryOf(
  name: string,
  marks: readonly DeliveryMark[],
  nowUs: number,
): number | null {
  const times = marks
    .filter((mark) => mark.subscription === name && mark.lastAtUs <= nowUs)
    .map((mark) => mark.lastAtUs);
  return times.length === 0 ? null : Math.max(...times);
}

/** Options and account list of one round. */
type Round = MaintenanceOptions & Awaited<ReturnType<typeof listAccount>>;

async function settle(
  registration: Registration,
  reviewed: Review,
  round: Round,
  context: AccountContext,
): Promise<MaintenanceResult> {
  const { name } = registration;
  const { current, action, notes } = reviewed;
  const reported = notes.map(({ code }) => code).join(' ') || null;
  const reportedBefore = registration.reported?.split(' ') ?? [];
  const newNotes = notes.filter(({ code }) => !reportedBefore.includes(code));
  const known = { name, id: reviewed.observed.subscriptionId };
  const by = { actor: 'maintain', nowUs: context.nowUs } as const;
  const runs = current?.status === 'running';
  await context.administration.commit({
    save: {
      ...reviewed.observed,
      ...(runs ? seenRunning(registration, round.askedAtUs) : {}),
      reported,
    },
    ...(runs ? gapsUntilNow(registration, context) : {}),
    history: newNotes.map((note) => historyEntry(known, 'noted', noteText(note), by)),
  });
  const hasNewNotes = newNotes.length > 0;
  const result = { name, status: current?.status ?? 'gone', did: action, notes, hasNewNotes };
  if (action === null) return { ...result, failure: null };
  try {
    await act(reviewed, round, context);
    return { ...result, failure: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (action === 'finish' && error.code !== 'unavailable') await giveUp(name, context);
    return { ...result, did: null, failure: [errorText(error), ...error.details].join(' ') };
  }
}

/** Closes the gaps of a running subscription, including that of a pause that a person ended. */
function gapsUntilNow(
  registration: Registration,
  { nowUs }: AccountContext,
): Pick<AdministrationChange, 'openGap' | 'closeGaps'> {
  const { name, pausedSeenAtUs, runningSeenAtUs } = registration;
  const wasPaused = pausedSeenAtUs !== null && runningSeenAtUs !== null;
  return {
    ...(wasPaused ? { openGap: gapOf(registration, runningSeenAtUs, 'it was paused') } : {}),
    closeGaps: { subscription: name, toUs: nowUs() },
  };
}

/** Prevents retries of a refused change in each round: each might pause and resume subscriptions. */
async function giveUp(name: string, { administration }: AccountContext): Promise<void> {
  const registration = (await administration.registrations()).find((one) => one.name === name);
  if (registration === undefined) return;
  const reported = `${registration.reported ?? ''} ${unfinishableCode}`.trim();
  await administration.commit({ save: { ...registration, reported } });
}

async function act(
  { action, current, reason, observed }: Review,
  { listed, askedAtUs, skipProbe = false }: Round,
  context: AccountContext,
): Promise<void> {
  const { name, type, events, filter, status } = observed;
  const desired: DesiredSubscription = { name, type, events, filter, status };
  if (action === 'resume' && current !== null) {
    // Only the status: other differences are deliberate changes of a person.
    requireRunningSlot(await context.client.list(), context.limits);
    const credentialsDigest = digestCredentials(context.credentials, context.newSecret());
    const edit = { status: 'running' } as const;
    await applyStep(
      { kind: 'edit', desired, current, edit, adopted: false },
      { ...context, credentialsDigest, actor: 'maintain', reason, listed, listedAtUs: askedAtUs },
    );
    return;
  }
  const prepared = await preparePlan({ desired: [desired], adoptsPull: false }, context);
  await applyPlan(prepared, context, { actor: 'maintain', reason, skipProbe });
}
