/** Reads dates and times in common written forms. */
import { type DateClaim, type DateParts, matchAt } from './claim.ts';

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const month =
  '(Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|' +
  'Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)(?![\\p{L}\\p{N}_])\\.?';

const wholeMonth =
  '(January|February|March|April|May|June|July|August|September|October|November|December)' +
  '(?![\\p{L}\\p{N}_])';

const day = '([0-9]{1,2})(?:st|nd|rd|th)?(?![\\p{L}\\p{N}_])';
const upTo = ' ?(?:\u2013|-|to|and|or|until|/) ?';
const year = '([0-9]{4})(?![\\p{L}\\p{N}_])';
const inYear = `(?:,? (?:of )?${year})?`;

/** `monthFirst`: in lower case, `may` and `march` are verbs. */
const forms = [
  form('([0-9]{4})-([0-9]{2})-([0-9]{2})(?![0-9])', ([y, m, d]) => [[ymd(y, m, d)]]),
  form('([0-9]{4})[/.]([0-9]{2})[/.]([0-9]{2})(?![0-9])', ([y, m, d]) => [[ymd(y, m, d)]]),
  form(`${day}${upTo}${day}(?: of)?[ -]${month}${inYear}`, ([first, last, m, y]) => [
    [named(y, m, first)],
    [named(y, m, last)],
  ]),
  form(`${day}(?: of)?[ -]${month}(?:-${year})?${inYear}`, ([d, m, hyphened, y]) => [
    [named(y || hyphened, m, d)],
  ]),
  form(
    `${month} (?:the )?${day}${upTo}${day}${inYear}`,
    ([m, first, last, y]) => [[named(y, m, first)], [named(y, m, last)]],
    true,
  ),
  form(`${month} (?:the )?${day}${inYear}`, ([m, d, y]) => [[named(y, m, d)]], true),
  form(`${month}(?:,| of)? ${year}`, ([m, y]) => [[named(y, m)]], true),
  form('([0-9]{1,2})([/-])([0-9]{1,2})\\2([0-9]{4}|[0-9]{2})(?![0-9/-])', ([a, , b, y]) => [
    [ymd(y, b, a), ymd(y, a, b)],
  ]),
  form('([0-9]{1,2})\\.([0-9]{1,2})\\.([0-9]{4})(?![0-9])', ([d, m, y]) => [[ymd(y, m, d)]]),
  form(wholeMonth, ([m]) => [[named(undefined, m)]], true),
];

const weekday =
  /(?:((?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)(?![\p{L}\p{N}_])|(Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun)\.?(?=,? [0-9]))(?:,? (?:the )?(?=[\p{L}\p{N}]))?/iuy;

const beforeTime = /(?:T|,? (?:at |from |between )?)(?=[0-9])/y;
const beforeDate = /,? (?:UTC )?(?:on )?(?:the )?/y;

function form(
  source: string,
  read: (groups: readonly string[]) => DateParts[][],
  monthFirst = false,
) {
  return { pattern: new RegExp(source, 'iuy'), read, monthFirst };
}

/**
 * Reads the date, the time or both that begin here; null if there is none. Does not validate: no fact has an
 * impossible date such as 90 May.
 */
export function readDate(text: string, start: number): DateClaim | null {
  const named = readWeekday(text, start);
  const date = readDay(text, named?.end ?? start);
  if (date !== null) {
    const time = readTime(text, matched(beforeTime, text, date.end) ?? date.end);
    const parts = { ...named?.parts, ...time?.parts };
    return claim(start, time?.end ?? date.end, withParts(date.dates, parts));
  }
  if (named !== null) return claim(start, named.nameEnd, [[named.parts]]);
  const time = readTime(text, start);
  if (time === null) return null;
  return dateAfter(text, start, time) ?? claim(start, time.end, [[time.parts]]);
}

function dateAfter(
  text: string,
  start: number,
  time: { parts: DateParts; end: number },
): DateClaim | null {
  const at = matched(beforeDate, text, time.end);
  if (at === null) return null;
  const named = readWeekday(text, at);
  const date = readDay(text, named?.end ?? at);
  if (date === null || date.dates.length > 1) return null;
  return claim(start, date.end, withParts(date.dates, { ...named?.parts, ...time.parts }));
}

function claim(start: number, end: number, dates: DateClaim['dates']): DateClaim {
  return { kind: 'date', start, end, dates };
}

/** For a span of days, the weekday belongs to the first day, and the time to the last. */
function withParts(dates: DateParts[][], parts: DateParts): DateParts[][] {
  const { weekday, ...time } = parts;
  return dates.map((readings, index) =>
    readings.map((reading) => ({
      ...reading,
      ...(index === 0 && weekday !== undefined ? { weekday } : {}),
      ...(index === dates.length - 1 ? time : {}),
    })),
  );
}

function readWeekday(
  text: string,
  at: number,
): { parts: DateParts; nameEnd: number; end: number } | null {
  const match = matchAt(weekday, text, at);
  // In lower case, `sat` and `sun` are other words.
  if (match === null || (match[2] !== undefined && /^\p{Ll}/u.test(match[2]))) return null;
  const name = match[1] ?? match[2] ?? '';
  const parts = { weekday: weekdays.indexOf(name.slice(0, 3).toLowerCase()) };
  return { parts, nameEnd: at + name.length, end: at + match[0].length };
}

function readDay(text: string, at: number): { dates: DateParts[][]; end: number } | null {
  for (const { pattern, read, monthFirst } of forms) {
    const match = matchAt(pattern, text, at);
    if (match === null || (monthFirst && /^ma(?:y|r)/.test(match[0]))) continue;
    return { dates: read(match.slice(1)), end: at + match[0].length };
  }
  return null;
}

/** Returns the end of a match that begins here. */
function matched(pattern: RegExp, text: string, at: number): number | null {
  const match = matchAt(pattern, text, at);
  return match === null ? null : at + match[0].length;
}

type Text = string | undefined;

function ymd(year: Text, month: Text, day: Text): DateParts {
  const short = year?.length === 2 ? `20${year}` : year;
  return { year: Number(short), month: Number(month), day: Number(day) };
}

function named(year: Text, name: Text, day?: Text): DateParts {
  const parts: DateParts = { month: months.indexOf((name ?? '').slice(0, 3).toLowerCase()) + 1 };
  if (day !== undefined) parts.day = Number(day);
  if (year !== undefined) parts.year = Number(year);
  return parts;
}

const zone = '(?: ?(UTC|GMT|Z)(?![\\p{L}\\p{N}_]))';

// Excludes `-02:00` without UTC, because `10:15-10:20` is a span.
const other =
  '(?: ?(?:UTC|GMT) ?[+-][0-9]{1,2}(?::?[0-9]{2})?(?![0-9])|\\+[0-9]{2}:?[0-9]{2}(?![0-9])|' +
  ' (?:local|solar) time)';

const half = '(?: ?([ap])\\.?m(?![\\p{L}\\p{N}_])\\.?)';

/** A colon forms a time; other separators only before a time zone, a.m. or p.m. */
const timeForms = [
  `([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]{1,9})?)?(?![0-9:])${half}?(?:(${other})|${zone})?`,
  `([0-9]{1,2})[.h]([0-9]{2})()()(?:(${other})|${zone})`,
  `([0-9]{1,2})[.h]([0-9]{2})()${half}(?:(${other})|${zone})?`,
  `([0-9]{2})([0-9]{2})()()(?:(${other})|${zone})`,
  `([0-9]{1,2})()()()()${zone}`,
  `([0-9]{1,2})()()${half}(?:(${other})|${zone})?`,
].map((source) => new RegExp(source, 'iuy'));

const afterAt = /([0-9]{1,2})\.([0-9]{2})(?![\p{L}\p{N}_%]| ?[%\p{L}]|\.[0-9])/uy;

/** Reads the time that begins here; null if there is none. */
function readTime(text: string, start: number): { parts: DateParts; end: number } | null {
  for (const pattern of timeForms) {
    const match = matchAt(pattern, text, start);
    if (match !== null) return { parts: partsOf(match), end: start + match[0].length };
  }
  if (!/ at $/i.test(text.slice(Math.max(0, start - 4), start))) return null;
  const match = matchAt(afterAt, text, start);
  return match === null ? null : { parts: partsOf(match), end: start + match[0].length };
}

function partsOf(match: RegExpExecArray): DateParts {
  const [, hours = '', minutes, seconds, halfOfDay, otherZone] = match;
  const parts: DateParts = { hour: hourOf(Number(hours), halfOfDay), minute: Number(minutes || 0) };
  if (seconds) parts.second = Number(seconds);
  if (otherZone && !/[+-]0{1,2}(?::?00)?$/.test(otherZone)) parts.zone = 'other';
  return parts;
}

function hourOf(hour: number, halfOfDay: string | undefined): number {
  if (!halfOfDay) return hour;
  return (hour % 12) + (halfOfDay.toLowerCase() === 'p' ? 12 : 0);
}
