/** What is known to be complete, hour by hour and as a whole: from what was compared and what was asked for. */
import { type Definition, type HourCoverage, hourUs } from './completeness.ts';
import { sortedEvents } from './subscription.ts';

/** How an hour stands; the worst that holds. */
export type HourState =
  | 'outside' // nothing was asked for then
  | 'pruned' // notifications of it were removed: nothing is said of it
  | 'unknown' // not compared yet, or not all of its kinds of events
  | 'missing' // events are not in the log
  | 'recovered' // complete: some events had to be fetched
  | 'late' // complete: some pushes came late
  | 'quiet' // complete: there was no event
  | 'pushed'; // complete: all was pushed in time

export interface CoverageCounts {
  expected: number;
  pushed: number;
  late: number;
  recovered: number;
  missing: number;
}

export interface ReportedHour extends CoverageCounts {
  hourUs: number;
  state: HourState;
}

export interface SubscriptionCoverage extends CoverageCounts {
  subscription: string;
  /** One for each hour of the report, oldest first. */
  hours: ReportedHour[];
  comparedHours: number;
  unknownHours: number;
  /** Of what is expected, what is in the log, 0 to 1; null where no hour was compared. */
  complete: number | null;
  /** The same for what pushes told, in time or late. */
  told: number | null;
}

/** Hours from the one that holds `sinceUs` to the one that holds `untilUs` (excluded), by name. */
export function reportCoverage(options: {
  definitions: readonly Definition[];
  hours: readonly HourCoverage[];
  sinceUs: number;
  untilUs: number;
  /** As `CompletenessReader` has it. */
  wholeSinceUs: number;
}): SubscriptionCoverage[] {
  const { definitions, sinceUs, untilUs, wholeSinceUs } = options;
  const hours = options.hours.filter((hour) => hour.hourUs >= wholeSinceUs);
  const names = [...new Set([...definitions, ...hours].map((one) => one.subscription))];
  const known = new Map<string, HourCoverage[]>();
  for (const hour of hours) {
    const key = keyOf(hour);
    const same = known.get(key);
    if (same === undefined) known.set(key, [hour]);
    else same.push(hour);
  }
  return names.toSorted().flatMap((subscription) => {
    const own = definitions.filter((one) => one.subscription === subscription);
    const reported: ReportedHour[] = [];
    for (let at = hourOf(sinceUs); at < untilUs; at += hourUs) {
      const compared = known.get(keyOf({ subscription, hourUs: at })) ?? [];
      const isPruned = at < wholeSinceUs;
      reported.push(reportHour(at, { compared, events: eventsWithin(own, at), isPruned }));
    }
    // One that was given up before is no part of the report.
    if (reported.every(({ state }) => state === 'outside')) return [];
    return [summed(subscription, reported)];
  });
}

/** The beginning of the hour that a moment lies in. */
export function hourOf(us: number): number {
  return Math.floor(us / hourUs) * hourUs;
}

/** Sums of any counts. */
export function sumCounts(counts: readonly CoverageCounts[]): CoverageCounts {
  const sum = { expected: 0, pushed: 0, late: 0, recovered: 0, missing: 0 };
  for (const one of counts) {
    sum.expected += one.expected;
    sum.pushed += one.pushed;
    sum.late += one.late;
    sum.recovered += one.recovered;
    sum.missing += one.missing;
  }
  return sum;
}

const keyOf = (one: Pick<HourCoverage, 'subscription' | 'hourUs'>) =>
  `${one.subscription} ${one.hourUs}`;

/** What was asked for at some time within an hour. Definitions are of one subscription, oldest first. */
function eventsWithin(definitions: readonly Definition[], at: number): readonly string[] {
  const within = definitions.filter(({ fromUs }, i) => {
    const endUs = definitions[i + 1]?.fromUs ?? Number.POSITIVE_INFINITY;
    return fromUs < at + hourUs && endUs > at && endUs > fromUs;
  });
  return sortedEvents(within.flatMap(({ events }) => events));
}

function reportHour(
  at: number,
  {
    compared,
    events,
    isPruned,
  }: { compared: readonly HourCoverage[]; events: readonly string[]; isPruned: boolean },
): ReportedHour {
  const counts = sumCounts(compared);
  const isKnown = events.every((event) => compared.some((one) => one.event === event));
  return {
    hourUs: at,
    ...counts,
    state: stateOf(counts, { isKnown, isAsked: events.length > 0, isPruned, compared }),
  };
}

function stateOf(
  { expected, late, recovered, missing }: CoverageCounts,
  hour: {
    isKnown: boolean;
    isAsked: boolean;
    isPruned: boolean;
    compared: readonly HourCoverage[];
  },
): HourState {
  if (missing > 0) return 'missing';
  // An hour before the subscription may have been compared, too, when somebody asked for it.
  if (!hour.isAsked && hour.compared.length === 0) return 'outside';
  if (!hour.isKnown) return hour.isPruned ? 'pruned' : 'unknown';
  if (recovered > 0) return 'recovered';
  if (late > 0) return 'late';
  return expected === 0 ? 'quiet' : 'pushed';
}

function summed(subscription: string, hours: ReportedHour[]): SubscriptionCoverage {
  const counts = sumCounts(hours);
  const { expected, pushed, late, missing } = counts;
  const isCompared = ({ state }: ReportedHour) =>
    state !== 'unknown' && state !== 'outside' && state !== 'pruned';
  const comparedHours = hours.filter(isCompared).length;
  const share = (part: number) => {
    if (comparedHours === 0 && expected === 0) return null;
    return expected === 0 ? 1 : part / expected;
  };
  return {
    subscription,
    ...counts,
    hours,
    comparedHours,
    unknownHours: hours.filter(({ state }) => state === 'unknown').length,
    complete: share(expected - missing),
    told: share(pushed + late),
  };
}
