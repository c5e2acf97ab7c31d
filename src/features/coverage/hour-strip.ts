/** Prints the states of hours as one character each, or of days in a long period. Readable without colours. */

import type { painter } from '../../core/cli/output.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import { dayUs, hourUs } from '../../core/terms/time-units.ts';
import type { HourState, ReportedHour } from './coverage.ts';
import { hourLooks, occurringStates, worstState } from './report.ts';

type Paint = ReturnType<typeof painter>;

const colours = { bad: 'red', warn: 'cyan', note: 'yellow', good: 'green', plain: 'dim' } as const;

/** Maximum number of days shown by hour. */
const hourlyDaysMax = 14;

const cellsPerLine = 61;

/**
 * Lines such as `  2026-11-14  ██▒█…` with 24 hours each; for more than two weeks, one character per day. They begin
 * with the first day that has any state.
 */
export function stripLines(hours: readonly ReportedHour[], paint: Paint): string[] {
  const days = [...byDay(hours)];
  const first = days.findIndex(([, states]) => worstState(states) !== 'outside');
  const shown = first === -1 ? [] : days.slice(first);
  const line = (day: number, states: readonly HourState[]) =>
    `  ${formatDateUs(day).slice(0, 10)}  ${painted(states, paint)}`;
  if (days.length <= hourlyDaysMax) return shown.map(([day, states]) => line(day, states));
  const worst = shown.map(([, states]) => worstState(states));
  const starts = worst.flatMap((_, i) => (i % cellsPerLine === 0 ? [i] : []));
  return starts.map((at) => line(shown[at]?.[0] ?? 0, worst.slice(at, at + cellsPerLine)));
}

/** Legend of the characters that occur. */
export function stripLegend(hours: readonly ReportedHour[], paint: Paint): string {
  const shown = occurringStates(hours).filter((state) => state !== 'outside');
  const parts = shown.map((state) => `${painted([state], paint)} ${hourLooks[state].label}`);
  return `${parts.join('   ')}   (UTC)`;
}

/** Groups the states by day, 24 hours each; hours before the first or after the last are outside. */
function byDay(hours: readonly ReportedHour[]): Map<number, HourState[]> {
  const days = new Map<number, HourState[]>();
  for (const { hourUs: atUs, state } of hours) {
    const day = Math.floor(atUs / dayUs) * dayUs;
    const states = days.get(day) ?? Array.from({ length: 24 }, () => 'outside' as const);
    states[Math.round((atUs - day) / hourUs)] = state;
    days.set(day, states);
  }
  return days;
}

/** Colours neighbours of the same state together. */
function painted(states: readonly HourState[], paint: Paint): string {
  let text = '';
  for (let at = 0; at < states.length; ) {
    const state = states[at] ?? 'outside';
    let end = at;
    while (states[end] === state) end += 1;
    const { tone, bar } = hourLooks[state];
    text += paint(colours[tone], bar.repeat(end - at));
    at = end;
  }
  return text;
}
