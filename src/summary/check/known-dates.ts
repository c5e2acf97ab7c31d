/** The dates of the facts, and whether a date that is said is one of them. */
import type { Claim, DateParts } from './claim.ts';

/** A time alone is one of the day before it: `20 May 2024 10:15 UTC to 10:20 UTC`. */
export function datesOf(claims: readonly Claim[]): DateParts[] {
  const found: DateParts[] = [];
  let day: DateParts = {};
  for (const claim of claims) {
    if (claim.kind !== 'date') continue;
    for (const date of claim.dates.flat()) {
      if (date.day === undefined) found.push(date.hour === undefined ? date : { ...day, ...date });
      else {
        const { year, month } = date;
        day = { day: date.day, ...(year && { year }), ...(month && { month }) };
        found.push(date);
      }
    }
  }
  return found;
}

/** `same day` and `next day` are said rightly when two dates of the facts are so. */
export function dayPhrases(dates: readonly DateParts[]): string[] {
  const days = dates
    .map(dayNumberOf)
    .filter((day) => day !== null)
    .sort((a, b) => a - b);
  const gaps = days.slice(1).map((day, index) => day - (days[index] ?? day));
  return [...(gaps.includes(0) ? ['same day'] : []), ...(gaps.includes(1) ? ['next day'] : [])];
}

/** Days since 1970; null for a date that lacks a part. */
function dayNumberOf({ year, month, day }: DateParts): number | null {
  if (year === undefined || month === undefined || day === undefined) return null;
  return Date.UTC(year, month - 1, day) / 86_400_000;
}

/** Whether some date of the facts has all parts that are said of this one. */
export function isKnownDate(said: DateParts, known: readonly DateParts[]): boolean {
  return known.some((date) => {
    const days = dayNumberOf(date);
    const weekday =
      date.weekday ?? (days === null ? undefined : new Date(days * 864e5).getUTCDay());
    const whole: DateParts = weekday === undefined ? date : { ...date, weekday };
    return Object.entries(said).every(([part, value]) => whole[part as keyof DateParts] === value);
  });
}
