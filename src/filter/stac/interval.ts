/** Intervals of sensing time. */
import { AppError } from '../../domain/app-error.ts';
import { readDateUs } from '../../domain/dates.ts';
import { and, type Expression, expression } from '../builder.ts';

/** Both ends are included; null: open. */
export interface Interval {
  fromUs: number | null;
  toUs: number | null;
}

/** `date-time` and `full-date` of RFC 3339, 5.6; the values are checked afterwards. */
const form = /^\d{4}-\d\d-\d\d(?:(t)\d\d:\d\d:\d\d(?:\.\d+)?(?:z|[+-]\d\d:\d\d))?$/i;

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
  const [whole, time] = form.exec(text) ?? [];
  const isEndOfDay = side === 'to' && time === undefined;
  const us = whole && readDateUs(isEndOfDay ? `${whole}T23:59:59.999999Z` : whole);
  if (typeof us === 'number') return us;
  throw new AppError(
    'invalid',
    `${JSON.stringify(text.slice(0, 60))} is not a time of RFC 3339, such as 2026-11-20T06:00:00Z or 2026-11-20T06:00:00.5+01:00.`,
  );
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
