/** Evaluates one registered subscription against the account: what to do, what to report. */
import type { Registration } from '../domain/account.ts';
import { withAdvice } from '../domain/app-error.ts';
import { type DesiredSubscription, endpointOf } from '../domain/subscription.ts';
import { differencesOf, isSameEndpoint } from './plan.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

export interface ReviewInput {
  registration: Registration;
  /** What `earshot.config.ts` says of it: null when it is not named there, undefined without the file. */
  inFile: DesiredSubscription | null | undefined;
  /** Ours of this name, as listed. */
  candidates: readonly CatalogueSubscription[];
  lastDeliveryAtUs: number | null;
  nowUs: number;
  publicUrl: string;
}

/** `resume` and `recreate` undo what the service did automatically; `finish` resumes a change of ours. */
type MaintenanceAction = 'resume' | 'recreate' | 'finish';

export interface Note {
  /** Identifies a note, so that it is reported once. */
  code: string;
  message: string;
  advice?: string | undefined;
}

/** A note as one text, to be shown. */
export function noteText({ message, advice }: Note): string {
  return withAdvice(message, advice);
}

export interface Review {
  current: CatalogueSubscription | null;
  lifetime: Lifetime;
  action: MaintenanceAction | null;
  /** Why, for the history; empty without an action. */
  reason: string;
  notes: Note[];
  /** The registration with what has been seen now. */
  observed: Registration;
}

export const dayUs = 86_400_000_000;

/** A warning stands this long before the service pauses, or deletes. */
const pauseWarningUs = 14 * dayUs;

const cancellationWarningUs = 30 * dayUs;

/** Kept among what was reported when a change that was cut short could not be finished. */
export const unfinishableCode = 'cannot-be-finished';

type Evaluation = Pick<Review, 'action' | 'reason' | 'notes'> & {
  heldBy?: Registration['heldBy'];
};

const nothing = { action: null, reason: '' } as const;

/** Undoes what the service did automatically; reports and keeps what a person did. Changes nothing itself. */
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
  const unwanted = input.inFile === null || isPausedByFile;
  const done = unwanted && rest.action !== 'finish' ? nothing : rest;
  const { action, reason } = done;
  return { current, lifetime, action, reason, notes, observed: { ...seen, heldBy } };
}

/** What has been seen, whatever follows from it. */
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
    // Somebody recreated it: its credentials are not known.
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
    const message = 'A change of it was cut short, and the catalogue refused the rest.';
    const advice = '`earshot register` tries again.';
    return { ...nothing, notes: [{ code: unfinishableCode, message, advice }] };
  }
  if (registration.unfinished) {
    return { action: 'finish', reason: 'a change was cut short', notes: [] };
  }
  if (current === null) return evaluateGone(registration, lifetime, nowUs);
  if (current.status === 'running') return evaluateRunning(registration, lifetime, nowUs);
  if (current.status === 'paused') return evaluatePaused(seen, lifetime, nowUs);
  const message = `The catalogue says that it is "${current.status}", which earshot does not know.`;
  return { ...nothing, notes: [{ code: 'unknown-status', message }] };
}

function evaluateGone(
  { heldBy, status }: Registration,
  { cancelsAtUs }: Lifetime,
  nowUs: number,
): Evaluation {
  if (heldBy === null && nowUs >= cancelsAtUs) {
    const reason = `the catalogue deletes after ${daysOf(cancellationUs)} days without a notification`;
    return { action: 'recreate', reason, notes: [] };
  }
  const message = `It was deleted at the catalogue, and it should be ${status}.`;
  const advice = '`earshot register` makes it anew.';
  return { ...nothing, heldBy: heldBy ?? 'person', notes: [{ code: 'gone', message, advice }] };
}

function evaluateRunning({ status }: Registration, lifetime: Lifetime, nowUs: number): Evaluation {
  if (status === 'paused') {
    const message = 'It was resumed at the catalogue, and it should be paused.';
    const advice = 'It is left as it is.';
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
            message: `No activity since ${dateOf(lifetime.lastActivityAtUs)}: the catalogue will pause it ${when(leftUs)}; maintenance resumes it then.`,
          },
        ];
  return { ...nothing, heldBy: null, notes: [...pause, ...cancellationNotes(lifetime, nowUs)] };
}

function evaluatePaused(seen: Registration, lifetime: Lifetime, nowUs: number): Evaluation {
  const { status, heldBy, pausedSeenAtUs } = seen;
  const ahead = cancellationNotes(lifetime, nowUs);
  if (status === 'paused') return { ...nothing, notes: ahead };
  const held = (by: 'person' | 'command', message: string, advice?: string): Evaluation => ({
    ...nothing,
    heldBy: by,
    notes: [{ code: `paused-by-${by}`, message, advice }, ...ahead],
  });
  if (heldBy === 'command')
    return held('command', 'It was paused by `earshot subscriptions pause`.');
  // Known to be paused before the service would have done it: a person did.
  const automatic = heldBy === null && (pausedSeenAtUs ?? nowUs) >= lifetime.pausesAtUs;
  if (!automatic) {
    return held(
      'person',
      'It was paused at the catalogue, and it should be running.',
      'It is left as it is; `earshot register` resumes it.',
    );
  }
  const reason = `the catalogue pauses after ${daysOf(inactivityPauseUs)} days without activity`;
  return { action: 'resume', reason, notes: ahead };
}

function cancellationNotes({ cancelsAtUs, lastNotificationAtUs }: Lifetime, nowUs: number): Note[] {
  const leftUs = cancelsAtUs - nowUs;
  if (leftUs > cancellationWarningUs) return [];
  const message = `No notification since ${dateOf(lastNotificationAtUs)}: the catalogue will delete it ${when(leftUs)}.`;
  const advice = 'Does its filter still match anything?';
  return [{ code: 'deletion-ahead', message, advice }];
}

/** Changes made elsewhere: reported, never undone. */
function driftNotes(
  { registration, candidates, publicUrl }: ReviewInput,
  current: CatalogueSubscription | null,
): Note[] {
  if (current === null || registration.unfinished) return [];
  const endpoint = endpointOf(publicUrl, registration.name);
  const differs = [
    ...differencesOf(registration, current),
    ...(isSameEndpoint(current.endpoint, endpoint) ? [] : ['endpoint']),
  ];
  const notes: Note[] = [];
  if (differs.length > 0) {
    const message = `Its ${differs.join(' and ')} at the catalogue ${differs.length === 1 ? 'is' : 'are'} not as registered.`;
    const advice = '`earshot register --dry-run` shows it.';
    notes.push({ code: `drift-${differs.join('-')}`, message, advice });
  }
  if (candidates.length > 1) {
    const message = `${candidates.length} subscriptions deliver to its path, so events come more than once.`;
    const advice = '`earshot register` keeps one.';
    notes.push({ code: 'several', message, advice });
  }
  if (registration.subscriptionId !== null && current.id !== registration.subscriptionId) {
    const message = `It was made anew at the catalogue, as ${current.id}.`;
    const advice = '`earshot register` adopts it.';
    notes.push({ code: 'other-id', message, advice });
  }
  return notes;
}

function fileNotes({ registration, inFile }: ReviewInput): Note[] {
  if (inFile === undefined) return [];
  if (inFile === null) {
    const message = 'It is no longer in earshot.config.ts, so it is not maintained.';
    const advice = '`earshot register --prune` deletes it.';
    return [{ code: 'unwanted', message, advice }];
  }
  const same = differencesOf(inFile, registration).length === 0;
  if (same && inFile.status === registration.status) return [];
  const message = 'earshot.config.ts says something else of it by now.';
  const advice = '`earshot register` applies it.';
  return [{ code: 'file-changed', message, advice }];
}

const daysOf = (us: number) => Math.round(us / dayUs);

const dateOf = (us: number) => new Date(us / 1000).toISOString().slice(0, 10);

const when = (leftUs: number) =>
  leftUs <= 0 ? 'any moment now' : `in ${Math.ceil(leftUs / dayUs)} days`;

/** Specification, Limits: without activity for so long, a running subscription is paused. */
const inactivityPauseUs = 60 * dayUs;

/** Specification, Limits: so long after the last notification, a subscription is deleted. */
const cancellationUs = 365 * dayUs;

export interface Lifetime {
  lastActivityAtUs: number;
  /** The last notification that is known; the creation when there was none. */
  lastNotificationAtUs: number;
  pausesAtUs: number;
  cancelsAtUs: number;
}

/**
 * Reckons from what the catalogue shows, else from our own records: `LastNotificationDate` is not
 * among the fields that the specification promises. `lastDeliveryAtUs` is the last delivery that the
 * receiver took for it.
 */
export function lifetimeOf(known: {
  listed: CatalogueSubscription | undefined;
  registration: Registration | undefined;
  lastDeliveryAtUs: number | null;
  nowUs: number;
}): Lifetime {
  const { listed, registration, lastDeliveryAtUs, nowUs } = known;
  const latest = (...times: (number | null | undefined)[]) => {
    const there = times.filter((time) => typeof time === 'number');
    return there.length === 0 ? undefined : Math.max(...there);
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
