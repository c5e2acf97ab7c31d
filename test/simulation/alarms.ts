/** `npm run bench:alarms`: how often the watchdog cries wolf on simulated months, and how soon it notices what is real. */
import { alignTable, figure } from '../../bench/figures.ts';
import { type BenchIo, type Benchmark, flag, integer, runBenchmark } from '../../bench/harness.ts';
import { type KindFigures, playKind } from './false-alarms.ts';
import { fallShares, type LossFigures, playLosses, usualLosses } from './lost-pushes.ts';
import { subscriptionKinds } from './subscription-kinds.ts';

/** More than one in twenty months would be a nuisance. */
const falseAlarmsPerMonthMax = 0.05;

/** Of the subscriptions, for each of the usual losses: there are several, and each push is drawn. */
const lossCountShare = 0.2;

const options = {
  subscriptions: integer('N', 'of each kind; a fifth of them for each usual loss of pushes', {
    ...{ default: 100, min: 1, max: 10_000 },
  }),
  months: integer('N', 'of each subscription, from its beginning', { default: 6, min: 1, max: 60 }),
  check: flag(
    `exit code 1 when there are more than ${falseAlarmsPerMonthMax} false alarms of silence a month`,
  ),
};

/** Runs the simulation and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(alarms, argv, io);
}

const alarms: Benchmark<typeof options> = {
  command: 'npm run bench:alarms --',
  about: `Plays months of simulated subscriptions to the watchdog's rules of silence and of lost pushes, and then lets
each stop, or lose pushes. The same numbers give the same figures.`,
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
  const header = ['Subscription', 'months', 'false alarms', 'a month', 'noticed h', '95 % h'];
  const rows = kinds.map((kind) => [
    kind.name,
    String(kind.months),
    String(kind.falseAlarms),
    figure(kind.falseAlarmsPerMonth, 3),
    figure(kind.detectedHoursMedian),
    figure(kind.detectedHours95),
  ]);
  const note = 'Noticed: hours from a real stop to the alarm, median and 95th percentile.';
  const about = kinds.map((kind) => `${kind.name}: ${kind.about}`);
  return [alignTable([header, ...rows]), [note, ...about].join('\n')];
}

function renderLosses(figures: readonly LossFigures[]): string {
  const falls = fallShares.flatMap((share) => [`${share * 100} % lost h`, '95 % h']);
  const header = ['Subscription', 'lost as usual', 'months', 'false alarms', 'of them at first'];
  const rows = figures.map((one) => [
    one.kind,
    one.usual,
    String(one.months),
    String(one.falseAlarms),
    String(one.firstMonthAlarms),
    figure(one.falseAlarmsPerMonth, 3),
    ...one.falls.flatMap(({ hoursMedian, hours95 }) => [figure(hoursMedian), figure(hours95)]),
  ]);
  return alignTable([[...header, 'a month', ...falls], ...rows]);
}
