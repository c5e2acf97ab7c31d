/** Entries in the order of one of their dates, so that a range of it is found without a look at the rest. */

/** What can be put in order. */
export interface DatedEntry {
  /** Microseconds since 1970, one for each field; -Infinity for one that is absent. */
  readonly datesUs: readonly number[];
  /** Puts equal dates in order. */
  readonly key: string;
}

/** From the first to before the second; microseconds since 1970. */
export interface DateRange {
  readonly fromUs: number;
  readonly toUs: number;
}

/** Places in the order: from the first to before the second. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
}

export interface DateIndex<Entry extends DatedEntry> {
  add(entry: Entry): void;
  /** Takes out an entry that was added. */
  remove(entry: Entry): void;
  /** Where a range of dates lies; what has no date lies in none. */
  find(range: DateRange): Stretch;
  /** Everything in order: absent dates first, equal ones by key. */
  readonly entries: readonly Entry[];
}

/** Creates an empty index of the date in place `field` of the entries. Quick where entries come nearly in order. */
export function createDateIndex<Entry extends DatedEntry>(field: number): DateIndex<Entry> {
  const entries: Entry[] = [];
  const compare = byDate(field);
  return {
    add: (entry) => {
      entries.splice(
        firstPlace(entries, (other) => compare(other, entry) >= 0),
        0,
        entry,
      );
    },
    remove: (entry) => {
      const place = firstPlace(entries, (other) => compare(other, entry) >= 0);
      if (entries[place] === entry) entries.splice(place, 1);
    },
    find: ({ fromUs, toUs }) => {
      const before = (us: number) => firstPlace(entries, (entry) => dateOf(entry, field) >= us);
      const start = before(Math.max(fromUs, Number.MIN_SAFE_INTEGER));
      return { start, end: Math.max(start, before(toUs)) };
    },
    entries,
  };
}

/** Compares by a date, `direction` 1 for ascending and -1 for descending; equal ones by key, ascending. */
export function byDate(field: number, direction: 1 | -1 = 1) {
  return (one: DatedEntry, other: DatedEntry): number => {
    const [oneUs, otherUs] = [dateOf(one, field), dateOf(other, field)];
    if (oneUs !== otherUs) return oneUs < otherUs ? -direction : direction;
    if (one.key === other.key) return 0;
    return one.key < other.key ? -1 : 1;
  };
}

function dateOf({ datesUs }: DatedEntry, field: number): number {
  return datesUs[field] ?? Number.NEGATIVE_INFINITY;
}

/** The first place from which on a condition holds, by halving. The end is tried first: most are added there. */
function firstPlace<Entry>(entries: readonly Entry[], holds: (entry: Entry) => boolean): number {
  const newest = entries.at(-1);
  if (newest === undefined || !holds(newest)) return entries.length;
  let [low, high] = [0, entries.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = entries[middle];
    if (entry !== undefined && holds(entry)) high = middle;
    else low = middle + 1;
  }
  return low;
}
