/** The words of a comparison: what is to be compared, how, and what came of it. */
import type { CatalogueEvent } from '../../domain/completeness.ts';
import type { SubscriptionEvent } from '../../domain/subscription.ts';

/** A time from `fromUs` to before `toUs`. */
export interface TimeWindow {
  fromUs: number;
  toUs: number;
}

/** Events of one kind, owed to one subscription, with a date within [fromUs, toUs). */
export interface ReconcileTask extends TimeWindow {
  subscription: string;
  /** Its Id at the catalogue, for the entries that are written; null when there is none. */
  subscriptionId: string | null;
  event: SubscriptionEvent;
  /** What the subscription asked for at that time. */
  filter: string;
  /** True before the subscription began: events are fetched, and not expected. */
  isEarlier: boolean;
  /** Hours within are compared as a whole: by this task, or by it and its neighbours together. */
  hours: TimeWindow;
}

/**
 * `check` writes coverage with what is missing, but no entries; `preview` writes nothing at all.
 */
export type ReconcileMode = 'write' | 'check' | 'preview';

/** How the log stands to an event that the catalogue shows; the words are those of `HourCoverage`. */
export type EventOutcome = 'pushed' | 'late' | 'recovered' | 'missing';

export type OutcomeCounts = Record<'expected' | EventOutcome, number>;

/** What was found; hours that were skipped are counted with what was found before. */
export interface TaskReport extends OutcomeCounts {
  task: ReconcileTask;
  /** Records that cannot be told apart or written, as they have no proper Id or date. */
  unreadable: number;
  /** Events of which nobody can tell whether the filter wants them. */
  undecided: number;
}

/** How far a comparison has got. */
export interface ReconcileProgress {
  tasksDone: number;
  tasks: number;
  task: ReconcileTask;
  /** All events with an earlier date are done. */
  upToUs: number;
  /** Records seen of the list that is being walked, and how many it has; null when nobody said. */
  seen: number;
  total: number | null;
  /** Of all that is left to do; null before anything is known. */
  etaMs: number | null;
}

/** An event that was not in the log. */
export type FoundMissing = CatalogueEvent & {
  productName: string | null;
  recovered: boolean;
  /** True for an event from before the subscription began. */
  isEarlier: boolean;
};

export function noCounts(): OutcomeCounts {
  return { expected: 0, pushed: 0, late: 0, recovered: 0, missing: 0 };
}
