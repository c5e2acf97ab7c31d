/** Evaluates one registered subscription against the account: what to do, what to report. */
import type { Registration } from '../domain/account.ts';
import { withAdvice } from '../domain/app-error.ts';
import { type DesiredSubscription, endpointOf } from '../domain/subscription.ts';
import { differencesOf, isSameEndpoint } from './plan.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

export interface ReviewInput {
  registration: Registration;
  /** Its entry in `earshot.config.ts`: null without an entry, undefined without the file. */
  inFile: DesiredSubscription | null | undefined;
  /** Managed subscriptions of this name, as listed. */
  candidates: readonly CatalogueSubscription[];
  lastDeliveryAtUs: number | null;
  nowUs: number;
  publicUrl: string | null;
}

/** `resume` and `recreate` undo what the service did automatically; `finish` completes an interrupted change. */
type MaintenanceAction = 'resume' | 'recreate' | 'finish';

export interface Note {
  /** Identifies a note, so that each is reported once. */
  code: string;
  message: string;
  advice?: string | undefined;
}

/** Returns a note as one text. */
export function noteText({ message, advice }: Note): string {
  return withAdvice(message, advice);
}

export interface Review {
  current: CatalogueSubscription | null;
  lifetime: Lifetime;
  action: MaintenanceAction | null;
  /** Reason of the action, for the history; empty without an action. */
  reason: string;
  notes: Note[];
  /** The registration with the observations of this review. */
  observed: Registration;
}

export const dayUs = 86_400_000_000;

/** Time of the warning before the catalogue pauses or deletes a subscription. */
const pauseWarningUs = 14 * dayUs;

const cancellationWarningUs = 30 * dayUs;

/** Code in `reported` when the catalogue refused to complete an interrupted change. */
export const unfinishableCode = 'cannot-be-finished';

type Evaluation = Pick<Review, 'action' | 'reason' | 'notes'> & {
  heldBy?: Registration['heldBy'];
};

const nothing = { action: null, reason: '' } as const;

/** Plans to undo changes that the catalogue made automatically; only reports those of a person. Changes nothing. */
export function review(input: ReviewInput): Review {
  const { registration, candidates, lastDeliveryAtUs, nowUs } = input;
  const current =
    candidates.find(({ id }) => id === registration.subscriptionId) ??
    candidates.find(({ status }) => status === 'running') ??
    candidates[0] ??
    null;
  const lifetime = lifetimeOf({
    listed: current ?? undefined,
    registration,
    lastDeliveryAtUs,
    nowUs,
  });
  const seen = observe(registration, current, lifetime, nowUs);
  const evaluated = evaluate(input, current, lifetime, seen);
  const { heldBy = seen.heldBy, ...rest } = evaluated;
  const notes = [...rest.notes, ...driftNotes(input, current), ...fileNotes(input)];
  const isPausedByFile = input.inFile?.status === 'paused' && registration.status === 'running';
  const isSkipped = (input.inFile === null || isPausedByFile) && rest.action !== 'finish';
  const { action, reason } = isSkipped ? nothing : rest;
  return { current, lifetime, action, reason, notes, observed: { ...seen, heldBy } };
}

/** Returns the registration with the observed state. */
function observe(
  registration: Registration,
  current: CatalogueSubscription | null,
  { lastActivityAtUs, lastNotificationAtUs }: Lifetime,
  nowUs: number,
): Registration {
  const times = { activityAtUs: lastActivityAtUs, notifiedAtUs: lastNotificationAtUs };
  if (current === null) return { ...registration, ...times };
  const other = current.id !== registration.subscriptionId;
  return {
    ...registration,
    ...times,
    subscriptionId: current.id,
    // Recreated by a person: its credentials are not known.
    ...(other ? { credentialsDigest: null } : {}),
    ...(current.status === 'running'
      ? { runningSeenAtUs: nowUs, pausedSeenAtUs: null }
      : { pausedSeenAtUs: registration.pausedSeenAtUs ?? nowUs }),
  };
}

function evaluate(
  { registration, nowUs }: ReviewInput,
  current: CatalogueSubscription | null,
  lifetime: Lifetime,
  seen: Registration,
): Evaluation {
  if (registration.reported?.split(' ').includes(unfinishableCode)) {
    const message = 'A change was interrupted, and the catalogue refused to complete it.';
    const advice = 'To retry: `earshot register`.';
    return { ...nothing, notes: [{ code: unfinishableCode, message, advice }] };
  }
  if (registration.unfinished) {
    return { action: 'finish', reason: 'a change was interrupted', notes: [] };
  }
  if (current === null) return evaluateGone(registration, lifetime, nowUs);
  if (current.status === 'running') return evaluateRunning(registration, lifetime, nowUs);
  if (current.status === 'paused') return evaluatePaused(seen, lifetime, nowUs);
  const message = `The subscription has an unknown status in the catalogue: "${current.status}".`;
  return { ...nothing, notes: [{ code: 'unknown-status', message }] };
}

function evaluateGone(
  { heldBy, status }: Registration,
  { cancelsAtUs }: Lifetime,
  nowUs: number,
): Evaluation {
  if (heldBy === null && nowUs >= cancelsAtUs) {
    const reason = `the catalogue deletes a subscription after ${daysOf(cancellationUs)} days without a notification`;
    return { action: 'recreate', reason, notes: [] };
  }
  const message = `The subscription was deleted in the catalogue; the desired status is ${status}.`;
  const advice = 'To create it again: `earshot register`.';
  return { ...nothing, heldBy: heldBy ?? 'person', notes: [{ code: 'gone', message, advice }] };
}

function evaluateRunning({ status }: Registration, lifetime: Lifetime, nowUs: number): Evaluation {
  if (status === 'paused') {
    const message = 'The subscription was resumed in the catalogue; the desired status is paused.';
    const advice =
      'Automatic maintenance does not change the status. To pause the subscription: `earshot register`.';
    return {
      ...nothing,
      heldBy: 'person',
      notes: [{ code: 'resumed-elsewhere', message, advice }],
    };
  }
  const leftUs = lifetime.pausesAtUs - nowUs;
  const pause =
    leftUs > pauseWarningUs
      ? []
      : [
          {
            code: 'pause-ahead',
            message: `No activity since ${dateOf(lifetime.lastActivityAtUs)}: the catalogue will pause the subscription ${when(leftUs)}, and maintenance will resume it.`,
          },
        ];
  return { ...nothing, heldBy: null, notes: [...pause, ...cancellationNotes(lifetime, nowUs)] };
}

function evaluatePaused(seen: Registration, lifetime: Lifetime, nowUs: number): Evaluation {
  const { status, heldBy, pausedSeenAtUs } = seen;
  const ahead = cancellationNotes(lifetime, nowUs);
  if (status === 'paused') return { ...nothing, notes: ahead };
  const keepPaused = (by: 'person' | 'command', message: string, advice?: string): Evaluation => ({
    ...nothing,
    heldBy: by,
    notes: [{ code: `paused-by-${by}`, message, advice }, ...ahead],
  });
  if (heldBy === 'command') {
    return keepPaused('command', 'The subscription was paused by `earshot subscriptions pause`.');
  }
  // Paused earlier than the catalogue would have done it: by a person.
  const automatic = heldBy === null && (pausedSeenAtUs ?? nowUs) >= lifetime.pausesAtUs;
  if (!automatic) {
    return keepPaused(
      'person',
      'The subscription was paused in the catalogue; the desired status is running.',
      'Automatic maintenance does not change the status. To resume the subscription: `earshot register`.',
    );
  }
  const reason = `the catalogue pauses a subscription after ${daysOf(inactivityPauseUs)} days without activity`;
  return { action: 'resume', reason, notes: ahead };
}

function cancellationNotes({ cancelsAtUs, lastNotificationAtUs }: Lifetime, nowUs: number): Note[] {
  const leftUs = cancelsAtUs - nowUs;
  if (leftUs > cancellationWarningUs) return [];
  const message = `No notification since ${dateOf(lastNotificationAtUs)}: the catalogue will delete the subscription ${when(leftUs)}.`;
  const advice = 'Check that the filter still matches products.';
  return [{ code: 'deletion-ahead', message, advice }];
}

/** Changes made elsewhere: reported, never undone. */
function driftNotes(
  { registration, candidates, publicUrl }: ReviewInput,
  current: CatalogueSubscription | null,
): Note[] {
  if (current === null || registration.unfinished) return [];
  const isPush = registration.type === 'push' && publicUrl !== null;
  const endpoint = isPush ? endpointOf(publicUrl, registration.name) : current.endpoint;
  const differs = [
    ...differencesOf(registration, current),
    ...(isSameEndpoint(current.endpoint, endpoint) ? [] : ['endpoint']),
  ];
  const notes: Note[] = [];
  if (differs.length > 0) {
    const message = `In the catalogue, the ${differs.join(' and ')} of the subscription ${differs.length === 1 ? 'differs' : 'differ'} from the registration.`;
    const advice = 'To show the differences: `earshot register --dry-run`.';
    notes.push({ code: `drift-${differs.join('-')}`, message, advice });
  }
  if (candidates.length > 1) {
    const message = `${candidates.length} subscriptions have the same endpoint, so each event is received more than once.`;
    const advice = 'To keep one of them: `earshot register`.';
    notes.push({ code: 'several', message, advice });
  }
  if (registration.subscriptionId !== null && current.id !== registration.subscriptionId) {
    const message = `The subscription was recreated in the catalogue, with the id ${current.id}.`;
    const advice = 'To use this id: `earshot register`.';
    notes.push({ code: 'other-id', message, advice });
  }
  return notes;
}

function fileNotes({ registration, inFile }: ReviewInput): Note[] {
  if (inFile === undefined) return [];
  if (inFile === null) {
    const message = 'The subscription is no longer in earshot.config.ts, so it is not maintained.';
    const advice = 'To delete it: `earshot register --prune`.';
    return [{ code: 'unwanted', message, advice }];
  }
  const same = differencesOf(inFile, registration).length === 0;
  if (same && inFile.status === registration.status) return [];
  const message = 'The entry of the subscription in earshot.config.ts has changed.';
  const advice = 'To apply the change: `earshot register`.';
  return [{ code: 'file-changed', message, advice }];
}

const daysOf = (us: number) => Math.round(us / dayUs);

const dateOf = (us: number) => new Date(us / 1000).toISOString().slice(0, 10);

const when = (leftUs: number) =>
  leftUs <= 0 ? 'at any time' : `in ${Math.ceil(leftUs / dayUs)} days`;

/** Specification, Limits: time without activity after which a running subscription is paused. */
const inactivityPauseUs = 60 * dayUs;

/** Specification, Limits: time after the last notification when a subscription is deleted. */
const cancellationUs = 365 * dayUs;

export interface Lifetime {
  lastActivityAtUs: number;
  /** Time of the last known notification; of the creation when there was none. */
  lastNotificationAtUs: number;
  pausesAtUs: number;
  cancelsAtUs: number;
}

/**
 * Computes the lifetime from the catalogue's fields, else from the store: the specification does not
 * guarantee `LastNotificationDate`. `lastDeliveryAtUs` is its last delivery to the receiver.
 */
export function lifetimeOf(input: {
  listed: CatalogueSubscription | undefined;
  registration: Registration | undefined;
  lastDeliveryAtUs: number | null;
  nowUs: number;
}): Lifetime {
  const { listed, registration, lastDeliveryAtUs, nowUs } = input;
  const latest = (...times: (number | null | undefined)[]) => {
    const known = times.filter((time) => typeof time === 'number');
    return known.length === 0 ? undefined : Math.max(...known);
  };
  const submittedAtUs = listed?.submittedAtUs;
  const notifiedAtUs = listed?.lastNotificationAtUs ?? lastDeliveryAtUs;
  const lastNotificationAtUs =
    latest(notifiedAtUs, submittedAtUs, registration?.notifiedAtUs) ?? nowUs;
  const lastActivityAtUs =
    latest(lastNotificationAtUs, registration?.activityAtUs) ?? lastNotificationAtUs;
  return {
    lastActivityAtUs,
    lastNotificationAtUs,
    pausesAtUs: lastActivityAtUs + inactivityPauseUs,
    cancelsAtUs: lastNotificationAtUs + cancellationUs,
  };
}
