/** Times and shares as sentences of alerts have them. */
import { hourUs } from '../domain/completeness.ts';
import { shortDateUs } from '../domain/notification-date.ts';

const minuteUs = 60_000_000;
export const dayUs = 24 * hourUs;

/** Such as `2026-05-01 14:20 UTC`. */
export function momentText(us: number): string {
  return `${shortDateUs(us)} UTC`;
}

/** Such as `40 min`, `9.5 h` or `12 days`. */
export function lengthText(us: number): string {
  if (us < 2 * hourUs) return `${Math.max(0, Math.round(us / minuteUs))} min`;
  if (us < 2 * dayUs) return `${rounded(us / hourUs)} h`;
  return `${rounded(us / dayUs)} days`;
}

/** Such as `5 %` or `0.1 %`. */
export function percentText(share: number): string {
  const percent = share * 100;
  return `${percent < 1 ? Number(percent.toPrecision(1)) : rounded(percent)} %`;
}

/** Such as `1,234`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** A number of which only the size matters: `0.4`, `12`, `1300`. */
export function rounded(value: number): string {
  return String(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
}
