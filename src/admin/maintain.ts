/** Maintenance: undoes automatic changes of the catalogue, completes interrupted ones, and reports all others. */

import { AppError, errorText, withAdvice } from '../core/terms/app-error.ts';
import type { CredentialPair } from '../core/terms/ports.ts';
import type { DesiredSubscription, RequestedStatus } from '../core/terms/subscription.ts';
import type { Registration } from './account.ts';
import { type Lifetime, lastDeliveryOf, lifetimeOf } from './account.ts';
import { type ApplyReason, applyDesired } from './apply.ts';
import { type AccountContext, isDigestOf, listAccount, observed } from './changes.ts';
import { differenceOf, fixedDifferences, sortAccount } from './differences.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

/** `resume` and `recreate` undo what the catalogue did; `finish` completes an interrupted change. */
export type MaintenanceAction = 'resume' | 'recreate' | 'finish';

export interface Note {
  message: string;
  advice: string;
  /** True if notifications are missed because of it. */
  isFailure?: boolean;
}

/** Returns a note as one text. */
export const noteText = ({ message, advice }: Note): string => withAdvice(message, advice);

export interface ReviewInput {
  registration: Registration;
  /** Its entry in `earshot.config.ts`: null without an entry, undefined without the file. */
  inFile: DesiredSubscription | null | undefined;
  /** Managed subscriptions of this name, as listed. */
  candidates: readonly CatalogueSubscription[];
  lastDeliveryAtUs: number | null;
  nowUs: number;
  publicUrl: string | null;
  /** Credentials of which the catalogue should have one; empty if they are not known. */
  pairs: readonly CredentialPair[];
}

export interface Review {
  current: CatalogueSubscription | null;
  lifetime: Lifetime;
  action: MaintenanceAction | null;
  /** Reason of the action, for the history. */
  reason: string;
  notes: Note[];
  changedByPerson: boolean;
}

/** Compares one registered subscription with the account. Pure. */
export function review(input: ReviewInput): Review {
  const { registration, candidates, lastDeliveryAtUs, inFile, nowUs } = input;
  const { subscriptionId, unfinished, changedByPerson, status, pausedSeenAtUs } = registration;
  const current =
    candidates.find(({ id }) => id === subscriptionId) ??
    candidates.find((one) => one.status === 'running') ??
    candidates[0] ??
    null;
  const lifetime = lifetimeOf({ listed: current, registration, lastDeliveryAtUs, nowUs });
  const notes = [...driftNotes(input), ...fileNotes(input)];
  const found = { current, lifetime, action: null, reason: '', notes, changedByPerson };
  const noted = (note: Note): Review => ({ ...found, notes: [note, ...notes] });
  const isRemoved = inFile === null && registration.origin === 'file';
  const isToBePaused = inFile?.status === 'paused' && status === 'running';
  if (isRemoved || (isToBePaused && current?.status !== 'running')) return found;
  if (unfinished && registration.type === 'pull') {
    const message = 'A change of the subscription was interrupted.';
    const advice = 'To complete it: `earshot register`.';
    return noted({ message, advice, isFailure: true });
  }
  if (unfinished) return { ...found, action: 'finish', reason: 'a change was interrupted' };
  if (current === null) return { ...found, action: 'recreate', reason: 'it no longer exists' };
  if (current.status === status) return { ...found, changedByPerson: false };
  // Paused earlier than the catalogue would have done it: by a person.
  const isDue = (pausedSeenAtUs ?? nowUs) >= lifetime.pausesAtUs;
  if (current.id !== subscriptionId) {
    const message = `The subscription is ${current.status} in the catalogue, and its id is not registered; the desired status is ${status}.`;
    const advice = 'To register it and change its status: `earshot register`.';
    return noted({ message, advice, isFailure: status === 'running' });
  }
  if (current.status === 'paused' && !changedByPerson && isDue) {
    const reason = 'the catalogue pauses a subscription after 60 days without activity';
    return { ...found, action: 'resume', reason };
  }
  const message = `The subscription is ${current.status} in the catalogue, changed by a person; the desired status is ${status}.`;
  const advice = 'Automatic maintenance does not change it. To change it: `earshot register`.';
  return { ...noted({ message, advice }), changedByPerson: true };
}

/** Stands for a public URL that is not set: the endpoint is not compared then. */
const unknownUrl = 'https://unknown.invalid';

/** Differences from the registration, except the status: reported, never undone. */
function driftNotes({ registration, candidates, publicUrl, pairs }: ReviewInput): Note[] {
  const { credentialsDigest: digest, unfinished } = registration;
  if (unfinished || candidates.length === 0) return [];
  const isKnown = digest !== null && pairs.length > 0;
  const hasCredentials = () => !isKnown || pairs.some((pair) => isDigestOf(digest, pair));
  const difference = differenceOf(registration, candidates, registration, {
    publicUrl: publicUrl ?? unknownUrl,
    hasCredentials,
  });
  if (difference === null) return [];
  const { edit, adopted } = difference;
  const differs = [
    ...(difference.current === null ? difference.differs : []),
    ...(edit.endpoint === undefined || publicUrl === null ? [] : ['endpoint']),
    ...(edit.credentials === undefined || adopted ? [] : ['credentials']),
    ...(adopted ? ['id'] : []),
  ];
  const advice = 'To show the differences: `earshot register --dry-run`.';
  const several = `${candidates.length} subscriptions have the same endpoint, so each event is received more than once.`;
  const notes: Note[] =
    candidates.length > 1
      ? [{ message: several, advice: 'To keep one of them: `earshot register`.' }]
      : [];
  if (differs.length === 0) return notes;
  const message = `In the catalogue, the ${differs.join(' and ')} of the subscription ${differs.length === 1 ? 'differs' : 'differ'} from the registration.`;
  const isFailure = differs.includes('endpoint') || differs.includes('credentials');
  return [{ message, advice, isFailure }, ...notes];
}

function fileNotes({ registration, inFile }: ReviewInput): Note[] {
  if (inFile === undefined) return [];
  if (inFile === null) {
    if (registration.origin === 'flags') return [];
    const message = 'The subscription is no longer in earshot.config.ts, so it is not maintained.';
    const advice = 'To delete it: `earshot register --prune`.';
    return [{ message, advice }];
  }
  const isSame = fixedDifferences(inFile, registration).length === 0;
  if (isSame && inFile.status === registration.status) return [];
  const message = 'The registration differs from earshot.config.ts.';
  return [{ message, advice: 'To apply the file: `earshot register`.' }];
}

/** Result of a round for one subscription. */
export interface MaintenanceResult {
  name: string;
  /** Status in the catalogue before the round: running, paused, gone, or an unknown one. */
  status: string;
  /** The action that was taken; null for none. */
  did: MaintenanceAction | null;
  notes: Note[];
  /** Error of the action; null without one. */
  failure: string | null;
}

/**
 * Runs one round; without registrations, sends no request. `inFile` are the subscriptions in `earshot.config.ts`, null
 * without the file. With `skipProbe`, recreates without a check of the endpoint. Rejects when the account cannot be
 * listed. The failure of one subscription is in its result and does not affect the others.
 */
export async function maintain(
  inFile: readonly DesiredSubscription[] | null,
  context: AccountContext,
  skipProbe = false,
): Promise<MaintenanceResult[]> {
  const { administration, publicUrl } = context;
  const registrations = await administration.registrations();
  if (registrations.length === 0) return [];
  const { listed, askedAtUs } = await listAccount(context);
  const marks = await administration.deliveryMarks();
  const { managed } = sortAccount(listed, { publicUrl, registrations });
  const results: MaintenanceResult[] = [];
  for (const before of registrations) {
    const { name } = before;
    const nowUs = context.nowUs();
    const candidates = managed.get(name) ?? [];
    const seen = observed(before, candidates, askedAtUs, context);
    const reviewed = review({
      ...{ registration: seen.save, candidates, nowUs, publicUrl },
      pairs: context.accepted,
      inFile: inFile === null ? undefined : (inFile.find((one) => one.name === name) ?? null),
      lastDeliveryAtUs: lastDeliveryOf(name, marks, nowUs),
    });
    const { current, lifetime, changedByPerson, notes, action: did } = reviewed;
    const save = {
      ...{ ...seen.save, changedByPerson, activityAtUs: lifetime.lastActivityAtUs },
      notifiedAtUs: lifetime.lastNotificationAtUs,
    };
    await administration.commit({ ...seen, save });
    const failure = await act(seen.save, reviewed, skipProbe, context);
    const status = current?.status ?? 'gone';
    results.push({ name, status, notes, did: failure === null ? did : null, failure });
  }
  return results;
}

/** Takes the action. Returns the error as text; null without one. */
async function act(
  { name, type, events, filter, status }: Registration,
  { action, reason }: Review,
  skipProbe: boolean,
  context: AccountContext,
): Promise<string | null> {
  if (action === null) return null;
  const why = { actor: 'maintain', reason, skipProbe } as const;
  try {
    const desired = [{ name, type, events, filter, status }];
    // Other differences than the status are changes of a person.
    const onlyStatus = action === 'resume';
    await applyDesired({ desired, onlyStatus, adoptsPull: false }, context, why);
    return null;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return [errorText(error), ...error.details].join(' ');
  }
}

/**
 * Changes the status of a registered subscription, in the catalogue and as desired state, so that maintenance keeps it.
 * Rejects with `not_found` for a name that is not registered or not in the account, and as `applyDesired` does.
 */
export async function changeStatus(
  name: string,
  status: RequestedStatus,
  context: AccountContext,
  why: ApplyReason,
): Promise<void> {
  const registrations = await context.administration.registrations();
  const known = registrations.find((one) => one.name === name);
  if (known === undefined) {
    const names = registrations.map((one) => one.name).join(', ') || 'none';
    const message = `No subscription ${name} is registered. Registered: ${names}.`;
    const advice = 'To register one: `earshot register`.';
    throw new AppError('not_found', message, { advice });
  }
  const { type, events, filter } = known;
  const desired = [{ name, type, events, filter, status }];
  await applyDesired({ desired, onlyStatus: true, adoptsPull: false }, context, why);
}
