/** Judges one registered subscription against what the account shows: what to do, what to tell. */
import type { Registration } from '../../domain/administration.ts';
import { withAdvice } from '../../domain/app-error.ts';
import { type DesiredSubscription, endpointOf } from '../../domain/subscription.ts';
import { differencesOf, isSameEndpoint } from '../plan/plan.ts';
import type { CatalogueSubscription } from '../service/catalogue-subscription.ts';
import {
  cancellationUs,
  dayUs,
  inactivityPauseUs,
  type Lifetime,
  lifetimeOf,
} from './lifetimes.ts';

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

/** `resume` and `recreate` undo what the service did by itself; `finish` goes on with a change of ours. */
export type MaintenanceAction = 'resume' | 'recreate' | 'finish';

export interface Note {
  /** Tells notes apart, so that one is reported once. */
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
  because: string;
  notes: Note[];
  /** The registration with what has been seen now. */
  observed: Registration;
}

/** A warning stands this long before the service pauses, or deletes. */
const pauseWarningUs = 14 * dayUs;
const cancellationWarningUs = 30 * dayUs;

/** Kept among what was reported when a change that was cut short could not be finished. */
export const unfinishableCode = 'cannot-be-finished';

type Verdict = Pick<Review, 'action' | 'because' | 'notes'> & {
  heldBy?: Registration['heldBy'];
};
const nothing = { action: null, because: '' } as const;

/** What the service did by itself is undone; what a person did is told and left. Changes nothing. */
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
  const verdict = judge(input, current, lifetime, seen);
  const { heldBy = seen.heldBy, ...rest } = verdict;
  const notes = [...rest.notes, ...driftNotes(input, current), ...fileNotes(input)];
  const isPausedByFile = input.inFile?.status === 'paused' && registration.status === 'running';
  const unwanted = input.inFile === null || isPausedByFile;
  const done = unwanted && rest.action !== 'finish' ? nothing : rest;
  const { action, because } = done;
  return { current, lifetime, action, because, notes, observed: { ...seen, heldBy } };
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
    // Somebody made it anew: with which credentials is not known.
    ...(other ? { credentialsDigest: null } : {}),
    ...(current.status === 'running'
      ? { runningSeenAtUs: nowUs, pausedSeenAtUs: null }
      : { pausedSeenAtUs: registration.pausedSeenAtUs ?? nowUs }),
  };
}

function judge(
  { registration, nowUs }: ReviewInput,
  current: CatalogueSubscription | null,
  lifetime: Lifetime,
  seen: Registration,
): Verdict {
  if (registration.reported?.split(' ').includes(unfinishableCode)) {
    const message = 'A change of it was cut short, and the catalogue refused the rest.';
    const advice = '`earshot register` tries again.';
    return { ...nothing, notes: [{ code: unfinishableCode, message, advice }] };
  }
  if (registration.unfinished) {
    return { action: 'finish', because: 'a change was cut short', notes: [] };
  }
  if (current === null) return judgeGone(registration, lifetime, nowUs);
  if (current.status === 'running') return judgeRunning(registration, lifetime, nowUs);
  if (current.status === 'paused') return judgePaused(seen, lifetime, nowUs);
  const message = `The catalogue says that it is "${current.status}", which earshot does not know.`;
  return { ...nothing, notes: [{ code: 'unknown-status', message }] };
}

function judgeGone(
  { heldBy, status }: Registration,
  { cancelsAtUs }: Lifetime,
  nowUs: number,
): Verdict {
  if (heldBy === null && nowUs >= cancelsAtUs) {
    const because = `the catalogue deletes after ${daysOf(cancellationUs)} days without a notification`;
    return { action: 'recreate', because, notes: [] };
  }
  const message = `It was deleted at the catalogue, and it should be ${status}.`;
  const advice = '`earshot register` makes it anew.';
  return { ...nothing, heldBy: heldBy ?? 'person', notes: [{ code: 'gone', message, advice }] };
}

function judgeRunning({ status }: Registration, lifetime: Lifetime, nowUs: number): Verdict {
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

function judgePaused(seen: Registration, lifetime: Lifetime, nowUs: number): Verdict {
  const { status, heldBy, pausedSeenAtUs } = seen;
  const ahead = cancellationNotes(lifetime, nowUs);
  if (status === 'paused') return { ...nothing, notes: ahead };
  const held = (by: 'person' | 'command', message: string, advice?: string): Verdict => ({
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
  const because = `the catalogue pauses after ${daysOf(inactivityPauseUs)} days without activity`;
  return { action: 'resume', because, notes: ahead };
}

function cancellationNotes({ cancelsAtUs, lastNotificationAtUs }: Lifetime, nowUs: number): Note[] {
  const leftUs = cancelsAtUs - nowUs;
  if (leftUs > cancellationWarningUs) return [];
  const message = `No notification since ${dateOf(lastNotificationAtUs)}: the catalogue will delete it ${when(leftUs)}.`;
  const advice = 'Does its filter still match anything?';
  return [{ code: 'deletion-ahead', message, advice }];
}

/** Changes made elsewhere: told, never undone. */
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
