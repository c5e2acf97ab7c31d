/** Reads times of day: `10:15`, `10:15:31 UTC`, `10.15 UTC`, `2:52 p.m.`, `1015 UTC`. */
import type { DateParts } from './claim.ts';

const zone = '(?: ?(UTC|GMT|Z)(?![\\p{L}\\p{N}_]))';
// Not `-02:00` alone: `10:15-10:20` is a span.
const other =
  '(?: ?(?:UTC|GMT) ?[+-][0-9]{1,2}(?::?[0-9]{2})?(?![0-9])|\\+[0-9]{2}:?[0-9]{2}(?![0-9])|' +
  ' (?:local|solar) time)';
const half = '(?: ?([ap])\\.?m(?![\\p{L}\\p{N}_])\\.?)';

/** Colons make a time; other signs only where a zone or a half of the day follows. */
const forms = [
  `([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]{1,9})?)?(?![0-9:])${half}?(?:(${other})|${zone})?`,
  `([0-9]{1,2})[.h]([0-9]{2})()()(?:(${other})|${zone})`,
  `([0-9]{1,2})[.h]([0-9]{2})()${half}(?:(${other})|${zone})?`,
  `([0-9]{2})([0-9]{2})()()(?:(${other})|${zone})`,
  `([0-9]{1,2})()()()()${zone}`,
  `([0-9]{1,2})()()${half}(?:(${other})|${zone})?`,
].map((source) => new RegExp(source, 'iuy'));
const afterAt = /([0-9]{1,2})\.([0-9]{2})(?![\p{L}\p{N}_%]| ?[%\p{L}]|\.[0-9])/uy;

/** The time that begins here; null for none. */
export function readTime(text: string, start: number): { parts: DateParts; end: number } | null {
  for (const pattern of forms) {
    pattern.lastIndex = start;
    const match = pattern.exec(text);
    if (match !== null) return { parts: partsOf(match), end: start + match[0].length };
  }
  if (!/ at $/i.test(text.slice(Math.max(0, start - 4), start))) return null;
  afterAt.lastIndex = start;
  const match = afterAt.exec(text);
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
