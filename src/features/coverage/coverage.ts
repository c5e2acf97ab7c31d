/**
 * Definition of coverage, used by `coverage`, `status`, `/api/coverage`, `/api/status` and the metrics.
 *
 * Expected are the events that the catalogue query results show for the part of an hour in which the subscription was
 * registered. Each one is pushed, late, recovered or missing. For an hour that was not compared, all counts are 0 and
 * no share is given.
 */

import { z } from 'zod';
import { dayUs, hourOf, hourUs, shortDateUs } from '../../core/terms/dates.ts';
import { toJson } from '../../core/terms/json-rows.ts';
import { sortedEvents } from '../../core/terms/subscription.ts';
import {
  type CompletenessReader,
  type Definition,
  type HourCoverage,
  settlingUs,
} from './completeness.ts';
import { noCounts, type OutcomeCounts } from './tasks.ts';

/** State of an hour; the worst that applies. */
const hourStates = [
  'outside', // no event was requested
  'pruned', // its notifications were pruned: nothing is known
  'pending', // not compared yet: it ended less than half an hour ago, or not at all
  'unknown', // due, but not compared, or not for all kinds of events
  'missing', // incomplete: some events are not in the log
  'recovered', // complete: some events had to be fetched
  'late', // complete: some pushes were late
  'quiet', // complete: there were no events
  'pushed', // complete: all events were pushed in time
] as const;

export type HourState = (typeof hourStates)[number];

/** Comparison state of the due hours. */
const comparedStates = ['not-compared', 'partly-compared', 'compared'] as const;

type ComparedState = (typeof comparedStates)[number];

const count = z.int().min(0);

const countFields = {
  expected: count.describe('Events in the catalogue since the start of the subscription.'),
  pushed: count.describe('Events that were pushed within half an hour of the event.'),
  late: count.describe('Events that were pushed later, or after earshot had fetched the event.'),
  recovered: count.describe('Events that were not pushed, but fetched from the catalogue.'),
  missing: count.describe('Expected events that are not in the log.'),
};

const hourFields = z.object({
  hourUs: z.number().describe('Start of the hour.'),
  ...countFields,
  state: z.enum(hourStates),
});

export type ReportedHour = z.infer<typeof hourFields>;

const share = z.number().min(0).max(1).nullable();

/** Coverage of one subscription, as in `/api/coverage` and `/api/status`. */
export const coverageSummaryFields = {
  subscription: z.string(),
  ...countFields,
  state: z
    .enum(comparedStates)
    .describe(
      'Comparison of the due hours (ended more than half an hour ago). With `not-compared`, the counts are not valid.',
    ),
  comparedHours: count,
  unknownHours: count.describe('Number of hours that are due, but not compared.'),
  pendingHours: count.describe('Number of hours that are not due yet.'),
  complete: share.describe('Share of the expected events that are in the log; null if not known.'),
  pushedShare: share.describe('Share of the expected events that were pushed; null if not known.'),
  nextComparisonUs: z
    .number()
    .nullable()
    .describe('Due time of the next hour; null without a next hour or automatic comparison.'),
};

type SummaryDocument = z.infer<z.ZodObject<typeof coverageSummaryFields>>;

/** State of the automatic comparison. */
export const comparisonFields = z.object({
  automatic: z.boolean(),
  reason: z.string().nullable().describe('Reason why comparison is not automatic, or null.'),
});

export const coverageSchema = z.object({
  sinceUs: z.number(),
  untilUs: z.number(),
  comparison: comparisonFields,
  missing: count.describe('Missing events of all subscriptions.'),
  subscriptions: z.array(z.object({ ...coverageSummaryFields, hours: z.array(hourFields) })),
});

export interface CoverageSummary extends Omit<SummaryDocument, 'nextComparisonUs'> {
  /** When the first hour not compared yet is due, possibly in the past; null without one. */
  nextDueAtUs: number | null;
}

export interface SubscriptionCoverage extends CoverageSummary {
  /** Hours of the report, oldest first. */
  hours: ReportedHour[];
}

/** Reports the hours from the one of `sinceUs` to the one of `untilUs` (exclusive), by subscription name. */
export function reportCoverage(options: {
  definitions: readonly Definition[];
  hours: readonly HourCoverage[];
  sinceUs: number;
  untilUs: number;
  /** From `CompletenessReader`. */
  unprunedSinceUs: number;
  nowUs: number;
  /** Also reports a subscription that was removed before the day of the end. */
  isNamed?: boolean;
}): SubscriptionCoverage[] {
  const { definitions, sinceUs, untilUs, unprunedSinceUs, nowUs, isNamed = false } = options;
  const hours = options.hours.filter((hour) => hour.hourUs >= unprunedSinceUs);
  const names = [...new Set(definitions.map((one) => one.subscription))];
  const known = Map.groupBy(hours, keyOf);
  return names.toSorted().flatMap((subscription) => {
    const own = definitions.filter((one) => one.subscription === subscription);
    const last = own.at(-1);
    const isRemoved = last?.events.length === 0 && dayOf(last.fromUs) < dayOf(untilUs - 1);
    if (isRemoved && !isNamed) return [];
    const reported: ReportedHour[] = [];
    for (let at = hourOf(sinceUs); at < untilUs; at += hourUs) {
      const compared = known.get(keyOf({ subscription, hourUs: at })) ?? [];
      const events = eventsWithin(own, at);
      // A command may have compared an hour before the registration: no event of it is expected.
      const counts = sumCounts(events.length === 0 ? [] : compared);
      const when = { isPruned: at < unprunedSinceUs, isDue: dueAtUs(at) <= nowUs };
      const state = stateOf(counts, { compared, events, ...when });
      reported.push({ hourUs: at, ...counts, state });
    }
    // Omits subscriptions removed before the report.
    if (reported.every(({ state }) => state === 'outside')) return [];
    return [summed(subscription, reported)];
  });
}

const dayOf = (us: number) => Math.floor(us / dayUs);

/** Returns when an hour is first compared, after the time in which records and pushes may be delayed. */
function dueAtUs(at: number): number {
  return at + hourUs + settlingUs;
}

/** Adds up counts. */
export function sumCounts(counts: readonly OutcomeCounts[]): OutcomeCounts {
  const sum = noCounts();
  for (const one of counts) {
    for (const name of Object.keys(sum) as (keyof OutcomeCounts)[]) sum[name] += one[name];
  }
  return sum;
}

const keyOf = (one: Pick<HourCoverage, 'subscription' | 'hourUs'>) =>
  `${one.subscription} ${one.hourUs}`;

/** Returns the events requested at any time in an hour. `definitions`: of one subscription, oldest first. */
function eventsWithin(definitions: readonly Definition[], at: number): readonly string[] {
  const within = definitions.filter(({ fromUs }, i) => {
    const endUs = definitions[i + 1]?.fromUs ?? Number.POSITIVE_INFINITY;
    return fromUs < at + hourUs && endUs > at && endUs > fromUs;
  });
  return sortedEvents(within.flatMap(({ events }) => events));
}

interface HourFacts {
  compared: readonly HourCoverage[];
  /** Requested kinds of events. */
  events: readonly string[];
  isPruned: boolean;
  isDue: boolean;
}

function stateOf(
  { expected, late, recovered, missing }: OutcomeCounts,
  { compared, events, isPruned, isDue }: HourFacts,
): HourState {
  if (events.length === 0) return 'outside';
  if (missing > 0) return 'missing';
  const isKnown = events.every((event) => compared.some((one) => one.event === event));
  if (!isKnown && isPruned) return 'pruned';
  if (!isKnown) return isDue ? 'unknown' : 'pending';
  if (recovered > 0) return 'recovered';
  if (late > 0) return 'late';
  return expected === 0 ? 'quiet' : 'pushed';
}

const notCompared: readonly HourState[] = ['outside', 'pruned', 'pending', 'unknown'];

function summed(subscription: string, hours: ReportedHour[]): SubscriptionCoverage {
  const countOf = (counted: HourState) => hours.filter(({ state }) => state === counted).length;
  const open = hours.find(({ state }) => state === 'pending' || state === 'unknown');
  return withShares({
    subscription,
    ...sumCounts(hours),
    comparedHours: hours.filter(({ state }) => !notCompared.includes(state)).length,
    unknownHours: countOf('unknown'),
    pendingHours: countOf('pending'),
    nextDueAtUs: open === undefined ? null : dueAtUs(open.hourUs),
    hours,
  });
}

type HourCounts = Pick<CoverageSummary, 'comparedHours' | 'unknownHours'>;

/** Adds state and shares. Shares are null before the first compared hour. */
function withShares<Counts extends OutcomeCounts & HourCounts>(counts: Counts) {
  const { expected, missing, pushed, late, comparedHours, unknownHours } = counts;
  const state: ComparedState =
    comparedHours === 0 ? 'not-compared' : unknownHours > 0 ? 'partly-compared' : 'compared';
  const share = (part: number) =>
    comparedHours === 0 ? null : expected === 0 ? 1 : part / expected;
  return {
    ...counts,
    state,
    complete: share(expected - missing),
    pushedShare: share(pushed + late),
  };
}

/** Returns the total coverage of several subscriptions; null for none. */
export function sumCoverage(
  all: readonly CoverageSummary[],
): Omit<CoverageSummary, 'subscription'> | null {
  if (all.length === 0) return null;
  const hours = (key: 'comparedHours' | 'unknownHours' | 'pendingHours') =>
    all.reduce((sum, one) => sum + one[key], 0);
  const due = all.flatMap(({ nextDueAtUs }) => nextDueAtUs ?? []);
  return withShares({
    ...sumCounts(all),
    comparedHours: hours('comparedHours'),
    unknownHours: hours('unknownHours'),
    pendingHours: hours('pendingHours'),
    nextDueAtUs: due.length === 0 ? null : Math.min(...due),
  });
}

interface CoverageQuestion {
  sinceUs: number;
  untilUs: number;
  subscription?: string | undefined;
  nowUs: number;
}

/** Reports the whole hours that contain the window. Rejects with `unavailable` when the store cannot be read. */
export async function readSubscriptionCoverage(
  completeness: CompletenessReader,
  { sinceUs, untilUs, subscription, nowUs }: CoverageQuestion,
): Promise<SubscriptionCoverage[]> {
  const window = { sinceUs: hourOf(sinceUs), untilUs };
  const [all, hours, unprunedSinceUs] = await Promise.all([
    completeness.definitions(),
    completeness.coverage({ ...window, subscription }),
    completeness.unprunedSinceUs(),
  ]);
  const definitions = all.filter(
    (one) => subscription === undefined || one.subscription === subscription,
  );
  const isNamed = subscription !== undefined;
  return reportCoverage({ ...window, definitions, hours, unprunedSinceUs, nowUs, isNamed });
}

/** Converts a report to JSON. Shares are 0 to 1, null if not known. */
export function toCoverageJson(
  subscriptions: readonly SubscriptionCoverage[],
  { sinceUs, untilUs }: CoverageQuestion,
  comparisonOff: string | null,
) {
  return toJson(coverageSchema, {
    ...{ sinceUs: hourOf(sinceUs), untilUs, comparison: toComparison(comparisonOff) },
    missing: subscriptions.reduce((sum, { missing }) => sum + missing, 0),
    subscriptions: subscriptions.map(({ hours, ...summary }) => {
      return { ...toSummary(summary, comparisonOff), hours };
    }),
  });
}

/** Returns whether the receiver compares automatically, or why not. */
export function toComparison(comparisonOff: string | null) {
  return { automatic: comparisonOff === null, reason: comparisonOff };
}

/** The time of the next comparison is only known with automatic comparison. */
export function toSummary(
  { nextDueAtUs, ...counts }: CoverageSummary,
  comparisonOff: string | null,
) {
  return { ...counts, nextComparisonUs: comparisonOff === null ? nextDueAtUs : null };
}

/** Partly compared hours (by a command, before their end) do not count yet. */
const noHour = 'no full hour was compared yet';

/** Returns when the first whole hour is compared, or why none is; lower case, no full stop. */
export function notComparedText(
  { nextDueAtUs }: Pick<CoverageSummary, 'nextDueAtUs'>,
  { comparisonOff, nowUs }: { comparisonOff: string | null; nowUs: number },
): string {
  if (nextDueAtUs === null) return 'no hour to compare';
  const off = comparisonOff?.replace(/\.$/, '');
  const at = `${shortDateUs(nextDueAtUs)} UTC`;
  if (nextDueAtUs <= nowUs) {
    return off ? `not compared: ${off}` : `${noHour}; a running receiver compares one within 5 min`;
  }
  if (off === undefined) return `${noHour}; the first is compared at ${at}`;
  return `${noHour}; the first is due at ${at}, but automatic comparison is off: ${off}`;
}

/** Returns true when there is an hour that a command would compare and count. */
export function isDue(
  { nextDueAtUs }: Pick<CoverageSummary, 'nextDueAtUs'>,
  { nowUs }: { nowUs: number },
): boolean {
  return nextDueAtUs !== null && nextDueAtUs <= nowUs;
}
