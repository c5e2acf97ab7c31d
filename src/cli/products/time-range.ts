/** Reads spans of time on the command line: how long back, a date, a month, from one to another. */
import { InvalidArgumentError } from 'commander';
import { parseDate } from '../../domain/notification-date.ts';
import { lengthOfTimeUs } from '../time-argument.ts';

/** Microseconds since 1970, UTC; `fromUs` is in it, `untilUs` is not. An absent end is open. */
export interface TimeRange {
  fromUs?: number | undefined;
  untilUs?: number | undefined;
}

const advice =
  'Use 24h or 7d (back from now), a year, month or day such as 2026-11, or A..B, A.., ..B of these or of times such as 2026-11-20T06:00Z.';

/**
 * Reads `24h`, `7d`, `2026`, `2026-11`, `2026-11-20`, `A..B`, `A..`, `..B`; an end that is a year, a month
 * or a day belongs to the span as a whole. UTC unless a time names a zone. Throws commander's
 * InvalidArgumentError.
 */
export function parseTimeRange(text: string, nowUs: number): TimeRange {
  const parts = text.split('..').map((part) => part.trim());
  if (parts.length > 2) throw new InvalidArgumentError(advice);
  const [from = '', until] = parts;
  if (until === undefined) return single(from, nowUs);
  if (from === '' && until === '') throw new InvalidArgumentError(advice);
  const range = {
    ...(from === '' ? {} : { fromUs: moment(from, nowUs).startUs }),
    ...(until === '' ? {} : { untilUs: moment(until, nowUs).endUs }),
  };
  const { fromUs = Number.NEGATIVE_INFINITY, untilUs = Number.POSITIVE_INFINITY } = range;
  if (fromUs < untilUs) return range;
  throw new InvalidArgumentError(`It ends before it begins: put ${until} first.`);
}

function single(text: string, nowUs: number): TimeRange {
  const { startUs, endUs, kind } = moment(text, nowUs);
  if (kind === 'back') return { fromUs: startUs };
  if (kind === 'span') return { fromUs: startUs, untilUs: endUs };
  throw new InvalidArgumentError(
    `A moment is no span of time: use ${text}.. for all from then on, or ..${text} for all before.`,
  );
}

interface Moment {
  startUs: number;
  /** Where what the text names has ended: the same, or that of the next day, month or year. */
  endUs: number;
  kind: 'back' | 'span' | 'time';
}

function moment(text: string, nowUs: number): Moment {
  const backUs = lengthOfTimeUs(text);
  if (backUs !== null) return { startUs: nowUs - backUs, endUs: nowUs - backUs, kind: 'back' };
  const calendar = /^(\d{4})(?:-(\d\d))?(?:-(\d\d))?$/.exec(text);
  if (calendar !== null) return calendarSpan(calendar);
  const date = parseDate(text);
  if (date === null) throw new InvalidArgumentError(advice);
  return { startUs: date.us, endUs: date.us, kind: 'time' };
}

function calendarSpan([, year = '', month, day]: RegExpExecArray): Moment {
  const start = parseDate(`${year}-${month ?? '01'}-${day ?? '01'}`);
  if (start === null) throw new InvalidArgumentError(advice);
  const end = new Date(start.us / 1000);
  if (day !== undefined) end.setUTCDate(end.getUTCDate() + 1);
  else if (month !== undefined) end.setUTCMonth(end.getUTCMonth() + 1);
  else end.setUTCFullYear(end.getUTCFullYear() + 1);
  return { startUs: start.us, endUs: end.getTime() * 1000, kind: 'span' };
}
