/** How often the watchdog cries wolf, and how soon it notices a silence or lost pushes, on simulated months. */
import { createRandom } from '../src/sandbox/random.ts';
import { type SubscriptionKind, subscriptionKinds } from './false-alarm-kinds.ts';
import { playMonths } from './false-alarm-months.ts';
import { playAllLosses, renderLosses } from './lost-pushes.ts';
import { noticedAfter } from './noticed-after.ts';
import { integerOf, readFlags, UsageError } from './option-values.ts';
import { createProgress } from './progress.ts';
import type { BenchIo } from './run-measurement.ts';
import { alignTable, figure } from './table.ts';

/** More than one in twenty months would be a nuisance. */
const falseAlarmsPerMonthMax = 0.05;

/** Of the subscriptions, for each of the usual losses: there are several, and each push is drawn. */
const lossCountShare = 0.2;

const helpText = `Usage: npm run bench:alarms -- [--subscriptions N] [--months N] [--json] [--check]

  --subscriptions N  of each kind (100); a fifth of them for each usual loss of pushes
  --months N         of each subscription, from its beginning (6)
  --json             the figures as one JSON object
  --check            exit code 1 when there are more than ${falseAlarmsPerMonthMax} false alarms of silence a month
`;

/** Of one kind. Hours from the stop to the alarm; null where it was not noticed within 90 days. */
export interface KindFigures {
  readonly name: string;
  readonly about: string;
  readonly months: number;
  readonly falseAlarms: number;
  readonly falseAlarmsPerMonth: number;
  readonly detectedHoursMedian: number | null;
  readonly detectedHours95: number | null;
}

/** Runs the simulation and returns the exit code: 0 done, 1 too many alarms, 2 wrong usage. */
export async function runFalseAlarms(argv: string[], io: BenchIo): Promise<number> {
  try {
    const own = { subscriptions: { type: 'string' }, months: { type: 'string' } } as const;
    const values = readFlags(argv, own);
    if (values.help) {
      io.stdout.write(helpText);
      return 0;
    }
    const count = integerOf('subscriptions', values.subscriptions, 100, { min: 1, max: 10_000 });
    const months = integerOf('months', values.months, 6, { min: 1, max: 60 });
    const progress = createProgress(io.stderr);
    const kinds = subscriptionKinds.map((kind) => {
      progress.show(kind.name);
      return playKind(kind, count, months);
    });
    const lossCount = Math.ceil(count * lossCountShare);
    const losses = playAllLosses(lossCount, months, (name) => progress.show(name));
    progress.clear();
    io.stdout.write(
      values.json
        ? `${JSON.stringify({ kinds, losses }, null, 2)}\n`
        : `${render(kinds)}\nLost pushes\n\n${renderLosses(losses)}`,
    );
    const isMet = kinds.every((kind) => kind.falseAlarmsPerMonth <= falseAlarmsPerMonthMax);
    return values.check && !isMet ? 1 : 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    io.stderr.write(`${error.message}\nTry --help.\n`);
    return 2;
  }
}

/** The same seeds give the same figures. */
export function playKind(kind: SubscriptionKind, count: number, months: number): KindFigures {
  const played = Array.from({ length: count }, (_, seed) =>
    playMonths(kind, months, createRandom(seed * 7919 + 1)),
  );
  const falseAlarms = played.reduce((sum, one) => sum + one.falseAlarms, 0);
  const hours = played.map(({ detectedHours }) => detectedHours);
  return {
    name: kind.name,
    about: kind.about,
    months: count * months,
    falseAlarms,
    falseAlarmsPerMonth: falseAlarms / (count * months),
    detectedHoursMedian: noticedAfter(0.5, hours),
    detectedHours95: noticedAfter(0.95, hours),
  };
}

function render(kinds: readonly KindFigures[]): string {
  const header = ['Subscription', 'months', 'false alarms', 'a month', 'noticed h', '95 % h'];
  const rows = kinds.map((kind) => [
    kind.name,
    String(kind.months),
    String(kind.falseAlarms),
    figure(kind.falseAlarmsPerMonth, 3),
    figure(kind.detectedHoursMedian),
    figure(kind.detectedHours95),
  ]);
  const about = kinds.map((kind) => `${kind.name}: ${kind.about}`);
  const note = 'Noticed: hours from a real stop to the alarm, median and 95th percentile.';
  return `${[alignTable([header, ...rows]), '', note, ...about].join('\n')}\n`;
}
