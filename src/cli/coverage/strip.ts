/** Hours as a strip of characters: a line for each day, or, where there are many, a character for each. */
import type { HourState, ReportedHour } from '../../domain/coverage-report.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { painter } from '../colour.ts';

type Paint = ReturnType<typeof painter>;

const dayUs = 86_400_000_000;
/** Days that are shown hour by hour. */
const hourlyDaysMax = 14;
const cellsPerLine = 61;

/** Readable without colour, too; the worst first. */
const cells: Record<HourState, { sign: string; colour: Parameters<Paint>[0]; words: string }> = {
  missing: { sign: '!', colour: 'red', words: 'missing' },
  unknown: { sign: '·', colour: 'dim', words: 'unknown' },
  pending: { sign: '·', colour: 'dim', words: 'unknown' },
  recovered: { sign: '▒', colour: 'yellow', words: 'recovered' },
  late: { sign: '▓', colour: 'cyan', words: 'late' },
  pushed: { sign: '█', colour: 'green', words: 'pushed' },
  quiet: { sign: '░', colour: 'green', words: 'no event' },
  pruned: { sign: '-', colour: 'dim', words: 'pruned' },
  outside: { sign: ' ', colour: 'dim', words: '' },
};
const worstFirst = Object.keys(cells) as HourState[];

/**
 * Lines such as `  2026-11-14  ██▒█…`, 24 hours each; of more than two weeks one character a day. They begin with the
 * first day on which anything was asked for.
 */
export function stripLines(hours: readonly ReportedHour[], paint: Paint): string[] {
  const days = byDay(hours);
  const shown = [...days];
  const first = shown.findIndex(([, states]) => worstOf(states) !== 'outside');
  shown.splice(0, first === -1 ? shown.length : first);
  if (days.size <= hourlyDaysMax) {
    return shown.map(([dayUs, states]) => `  ${dateOf(dayUs)}  ${painted(states, paint)}`);
  }
  const worst = shown.map(([, states]) => worstOf(states));
  const lines: string[] = [];
  for (let at = 0; at < worst.length; at += cellsPerLine) {
    const part = worst.slice(at, at + cellsPerLine);
    lines.push(`  ${dateOf(shown[at]?.[0] ?? 0)}  ${painted(part, paint)}`);
  }
  return lines;
}

/** What the characters mean; that of pruned hours only where there are some. */
export function stripLegend(hours: readonly ReportedHour[], paint: Paint): string {
  const isPruned = hours.some(({ state }) => state === 'pruned');
  const told = worstFirst
    .filter((state) => state !== 'outside' && state !== 'pending')
    .filter((state) => state !== 'pruned' || isPruned)
    .toReversed();
  const parts = told.map((state) => `${painted([state], paint)} ${cells[state].words}`);
  return `${parts.join('   ')}   (UTC)`;
}

/** The states of each day's 24 hours; what lies before the first or after the last is outside. */
function byDay(hours: readonly ReportedHour[]): Map<number, HourState[]> {
  const days = new Map<number, HourState[]>();
  for (const { hourUs, state } of hours) {
    const day = Math.floor(hourUs / dayUs) * dayUs;
    const states = days.get(day) ?? Array.from({ length: 24 }, () => 'outside' as const);
    states[Math.round((hourUs - day) / 3_600_000_000)] = state;
    days.set(day, states);
  }
  return days;
}

function worstOf(states: readonly HourState[]): HourState {
  return worstFirst.find((state) => states.includes(state)) ?? 'outside';
}

/** Neighbours of one colour are painted together. */
function painted(states: readonly HourState[], paint: Paint): string {
  let text = '';
  for (let at = 0; at < states.length; ) {
    const state = states[at] ?? 'outside';
    let end = at;
    while (states[end] === state) end += 1;
    text += paint(cells[state].colour, cells[state].sign.repeat(end - at));
    at = end;
  }
  return text;
}

function dateOf(us: number): string {
  return formatDateUs(us).slice(0, 10);
}
