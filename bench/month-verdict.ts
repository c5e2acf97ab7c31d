/** Holds the log of a month against the truth: product by product, and event by event. */
import { hourUs } from '../src/domain/coverage.ts';
import type { LoggedEvent } from './month-log.ts';
import { eventKey, type OwedEvent } from './month-truth.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** How long after its end an hour is compared first, and once more (decision 24). */
const settlingMs = 30 * minuteMs;
const secondLookMs = 24 * hourMs;

/** Each event that was owed counts once. */
export interface MonthCounts {
  owed: number;
  /** A push of it came in time. */
  pushed: number;
  /** One came more than half an hour after it happened, or after it had been looked up. */
  late: number;
  /** Looked up; no push of it came. */
  recovered: number;
  /** Lost: the catalogue did not show it any more when somebody could look. */
  superseded: number;
  deleted: number;
}

export interface MonthVerdict {
  /** By subscription and event, such as `acquisitions created`. */
  counts: Record<string, MonthCounts>;
  /** What must not be, in words; none when the log equals the truth. */
  faults: string[];
}

/** `rounds` are the times at which all that was due was compared, oldest first; ms since 1970. */
export function judgeMonth(
  owed: readonly OwedEvent[],
  logged: readonly LoggedEvent[],
  rounds: readonly number[],
): MonthVerdict {
  const faults: string[] = [];
  const counts: Record<string, MonthCounts> = {};
  const entries = Map.groupBy(logged, eventKey);
  const known = new Set<string>();
  for (const one of owed) {
    const key = eventKey(one);
    if (known.has(key)) faults.push(`owed twice: ${key}`);
    known.add(key);
    const kind = `${one.subscription} ${one.event}`;
    counts[kind] ??= { owed: 0, pushed: 0, late: 0, recovered: 0, superseded: 0, deleted: 0 };
    counts[kind].owed += 1;
    const found = entries.get(key) ?? [];
    if (found.length > 1) faults.push(`${found.length} entries: ${key}`);
    const fate = fateOf(one, found[0]);
    counts[kind][fate] += 1;
    const fault = faultOf(one, found[0], rounds);
    if (fault !== null) faults.push(`${fault}: ${key}`);
  }
  for (const key of entries.keys()) if (!known.has(key)) faults.push(`not owed: ${key}`);
  return { counts, faults };
}

/** What became of an event, by its entry in the log. */
export function fateOf(one: OwedEvent, entry: LoggedEvent | undefined) {
  if (entry === undefined) return one.hiddenBy === 'deleted' ? 'deleted' : 'superseded';
  if (entry.pushedAtUs === null) return 'recovered';
  const isLate = entry.source === 'reconcile' || entry.pushedAtUs > one.dateUs + settlingMs * 1_000;
  return isLate ? 'late' : 'pushed';
}

function faultOf(
  one: OwedEvent,
  entry: LoggedEvent | undefined,
  rounds: readonly number[],
): string | null {
  if (entry === undefined) {
    if (one.received) return 'received, and not in the log';
    if (one.shown) return 'shown, and not in the log';
    return wasLookedAt(one, rounds) ? 'shown when it was looked for, and not in the log' : null;
  }
  if (entry.dateUs !== one.dateUs) return `dated ${entry.dateUs} in the log`;
  if (one.received !== (entry.pushedAtUs !== null)) return 'told otherwise than it came';
  return null;
}

/** Whether the lists showed it at one of the two moments at which its hour must have been compared. */
function wasLookedAt(
  { dateUs, shownFromMs, hiddenFromMs }: OwedEvent,
  rounds: readonly number[],
): boolean {
  const endMs = (Math.floor(dateUs / hourUs) * hourUs + hourUs) / 1_000;
  return [endMs + settlingMs, endMs + secondLookMs].some((dueMs) => {
    const atMs = rounds.find((one) => one >= dueMs);
    return atMs !== undefined && atMs >= shownFromMs && atMs < hiddenFromMs;
  });
}

/** All kinds together. */
export function totalOf(counts: MonthVerdict['counts']): MonthCounts {
  const total = { owed: 0, pushed: 0, late: 0, recovered: 0, superseded: 0, deleted: 0 };
  for (const one of Object.values(counts)) {
    for (const name of Object.keys(total) as (keyof MonthCounts)[]) total[name] += one[name];
  }
  return total;
}
