/** Intervals of sensing time. */
import { AppError } from '../../core/terms/app-error.ts';
import { lostPlusAdvice, readDateUs } from '../../core/terms/dates.ts';
import { and, type Expression, expression } from '../../filter/builder.ts';

/** Both ends are included; null: open. */
export interface Interval {
  fromUs: number | null;
  toUs: number | null;
}

/** `date-time` and `full-date` of RFC 3339, 5.6; the values are checked afterwards. */
const form = /^\d{4}-\d\d-\d\d(?:t\d\d:\d\d:\d\d(?:\.\d+)?(?:z|[+-]\d\d:\d\d))?$/i;

const isDay = (text: string) => text.length === '2026-11-20'.length && form.test(text);

/** Reads a time or a whole day, or an interval with at least one end. Throws `invalid`. */
export function readInterval(text: string): Interval {
  const ends = text.split('/').map((one) => one.trim());
  const [first = '', last = first, ...more] = ends;
  const fromUs = endOf(first, 'from');
  const toUs = endOf(last, 'to');
  const isEmpty = fromUs !== null && toUs !== null && fromUs > toUs;
  const isOpen = fromUs === null && toUs === null;
  if (more.length === 0 && !isEmpty && !isOpen) return { fromUs, toUs };
  throw new AppError(
    'invalid',
    isEmpty
      ? 'The interval ends before it starts.'
      : 'datetime must be a time, or an interval such as 2026-11-20T00:00:00Z/2026-11-21T00:00:00Z, with .. for an open end.',
  );
}

function endOf(text: string, side: 'from' | 'to'): number | null {
  if (text === '..' || text === '') return null;
  return readRfc3339(isDay(text) && side === 'to' ? `${text}T23:59:59.999999Z` : text);
}

/** Returns true for the form of a day or a time. */
export const isRfc3339 = (text: string) => form.test(text);

/** Reads a day, which is its start, or a time, to microseconds since 1970. Throws `invalid`. */
export function readRfc3339(text: string): number {
  const written = JSON.stringify(text.slice(0, 60));
  if (!isRfc3339(text)) {
    const message = `${written} is not a time of RFC 3339, such as 2026-11-20T06:00:00Z or 2026-11-20T06:00:00.5+01:00.`;
    throw new AppError('invalid', message, { advice: lostPlusAdvice(text) });
  }
  const us = readDateUs(text);
  if (us !== null) return us;
  throw new AppError('invalid', `${written} is not a valid time of the years 0000 to 9999, UTC.`);
}

/** Matches products whose sensing time intersects the interval. */
export function sensedDuring({ fromUs, toUs }: Interval): Expression {
  const at = (field: string, operator: 'ge' | 'le', us: number) =>
    expression({ node: 'comparison', field, operator, literal: { type: 'date', us } });
  return and(
    ...(toUs === null ? [] : [at('ContentDate/Start', 'le', toUs)]),
    ...(fromUs === null ? [] : [at('ContentDate/End', 'ge', fromUs)]),
  );
}
