/** Times and shares as sentences of alerts have them. */
import { hourUs } from '../domain/completeness.ts';
import { shortDateUs } from '../domain/notification-date.ts';
import { wholeDays } from '../domain/whole-days.ts';

const minuteUs = 60_000_000;
export const dayUs = 24 * hourUs;

/** Such as `2026-05-01 14:20 UTC`. */
export function momentText(us: number): string {
  return `${shortDateUs(us)} UTC`;
}

/** Such as `40 s`, `40 min`, `9.5 h` or `12 days`. Days are whole. */
export function lengthText(us: number): string {
  if (us < minuteUs) return `${Math.max(0, Math.floor(us / 1_000_000))} s`;
  if (us < 2 * hourUs) return `${Math.round(us / minuteUs)} min`;
  if (us < 2 * dayUs) return `${rounded(us / hourUs)} h`;
  return `${wholeDays(us)} days`;
}

/** Such as `just now` or `40 min ago`. */
export function agoText(us: number): string {
  return us < minuteUs ? 'just now' : `${lengthText(us)} ago`;
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
