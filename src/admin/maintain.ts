/** One round of maintenance: resumes and recreates what the service stopped by itself, and reports. */
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

/** What a round found and did for one subscription. */
export interface MaintenanceResult {
  name: string;
  /** At the catalogue before the round: running, paused, gone, or a word that is new. */
  status: string;
  /** What was done; null for nothing. */
  did: Review['action'];
  notes: Note[];
  /** True when one of the notes was not there last time. */
  hasNewNotes: boolean;
  /** Why what had to be done could not be done. */
  failure: string | null;
}

export interface MaintenanceOptions {
  /** Recreates without looking at the endpoint first. */
  skipProbe?: boolean;
  /** What `earshot.config.ts` names; null without the file. */
  inFile: readonly DesiredSubscription[] | null;
}

/**
 * Does one round; without registrations nobody is asked anything. Rejects when the account cannot be
 * looked at; what fails for one subscription stands in its result and keeps nothing from the others.
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
 * The last delivery to a subscription's path, with whatever credentials. Marks from a clock that was
 * ahead are left out.
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

/** What the results of one round rest on. */
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
  const toldBefore = registration.reported?.split(' ') ?? [];
  const newNotes = notes.filter(({ code }) => !toldBefore.includes(code));
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

/** It runs: gaps are over, also that of a pause which somebody else has ended. */
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

/** What was refused once is not tried in every round: it may pause and resume things each time. */
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
  const { name, events, filter, status } = observed;
  const desired: DesiredSubscription = { name, events, filter, status };
  if (action === 'resume' && current !== null) {
    // Nothing but the status: what else differs was somebody's deliberate change.
    requireRunningSlot(await context.client.list(), context.limits);
    const credentialsDigest = digestCredentials(context.credentials, context.newSecret());
    const edit = { status: 'running' } as const;
    await applyStep(
      { kind: 'edit', desired, current, edit, adopted: false },
      { ...context, credentialsDigest, actor: 'maintain', reason, listed, listedAtUs: askedAtUs },
    );
    return;
  }
  const prepared = await preparePlan({ desired: [desired] }, context);
  await applyPlan(prepared, context, { actor: 'maintain', reason, skipProbe });
}
