/** `npm run bench:alarms`: false alarms of the watchdog in simulated months, and its delay to detect real failures. */
import { alignTable, figure } from '../../bench/figures.ts';
import { type BenchIo, type Benchmark, flag, integer, runBenchmark } from '../../bench/harness.ts';
import { type KindFigures, playKind } from './false-alarms.ts';
import { fallShares, type LossFigures, playLosses, usualLosses } from './lost-pushes.ts';
import { subscriptionKinds } from './subscription-kinds.ts';

/** Maximum rate of false alarms: one in twenty months. */
const falseAlarmsPerMonthMax = 0.05;

/** Share of the subscriptions simulated per loss rate; each push is simulated, which takes longer. */
const lossCountShare = 0.2;

const options = {
  subscriptions: integer(
    'N',
    'subscriptions of each kind; a fifth of them for each usual loss rate',
    {
      ...{ default: 100, min: 1, max: 10_000 },
    },
  ),
  months: integer('N', 'months per subscription, from its creation', {
    default: 6,
    min: 1,
    max: 60,
  }),
  check: flag(
    `exit code 1 when there are more than ${falseAlarmsPerMonthMax} false silence alarms a month`,
  ),
};

/** Runs the simulation and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(alarms, argv, io);
}

const alarms: Benchmark<typeof options> = {
  command: 'npm run bench:alarms --',
  about: `Simulates months of subscriptions with the watchdog's rules for silence and lost pushes, then stops
each subscription or loses pushes. The same arguments give the same figures.`,
  options,
  closing: 'Exit code: 0 done, 1 (--check) too many alarms, 2 wrong usage.',
  async measure({ subscriptions, months, check }, { progress }) {
    const kinds = subscriptionKinds.map((kind) => {
      progress.show(kind.name);
      return playKind(kind, subscriptions, months);
    });
    const lossCount = Math.ceil(subscriptions * lossCountShare);
    const losses = subscriptionKinds.flatMap((kind) =>
      usualLosses.map((usual) => {
        progress.show(`${kind.name}, ${usual.name}`);
        return playLosses(kind, usual, lossCount, months);
      }),
    );
    return {
      report: { kinds, losses },
      text: [...renderKinds(kinds), 'Lost pushes', renderLosses(losses)],
      hasFailed: check && kinds.some((kind) => kind.falseAlarmsPerMonth > falseAlarmsPerMonthMax),
    };
  },
};

function renderKinds(kinds: readonly KindFigures[]): string[] {
  const header = ['Subscription', 'months', 'false alarms', 'per month', 'detected h', '95 % h'];
  const rows = kinds.map((kind) => [
    kind.name,
    String(kind.months),
    String(kind.falseAlarms),
    figure(kind.falseAlarmsPerMonth, 3),
    figure(kind.detectedHoursMedian),
    figure(kind.detectedHours95),
  ]);
  const note = 'Detected: hours from a real stop to the alarm, median and 95th percentile.';
  const about = kinds.map((kind) => `${kind.name}: ${kind.about}`);
  return [alignTable([header, ...rows]), [note, ...about].join('\n')];
}

function renderLosses(figures: readonly LossFigures[]): string {
  const falls = fallShares.flatMap((share) => [`${share * 100} % lost h`, '95 % h']);
  const header = ['Subscription', 'usual loss', 'months', 'false alarms', 'in 1st month'];
  const rows = figures.map((one) => [
    one.kind,
    one.usual,
    String(one.months),
    String(one.falseAlarms),
    String(one.firstMonthAlarms),
    figure(one.falseAlarmsPerMonth, 3),
    ...one.falls.flatMap(({ hoursMedian, hours95 }) => [figure(hoursMedian), figure(hours95)]),
  ]);
  return alignTable([[...header, 'per month', ...falls], ...rows]);
}
