/** Tasks of a comparison: for a requested window, and those that are due automatically. */
import { expect, it } from 'vitest';
import type { Gap } from '../../../src/admin/account.ts';
import type { Definition, HourCoverage } from '../../../src/features/coverage/completeness.ts';
import { type DueOptions, dueTasks } from '../../../src/features/coverage/due-windows.ts';
import { type ReconcileTask, tasksOf } from '../../../src/features/coverage/tasks.ts';
import { hour, minute, settlingUs, t0 } from './set-up.ts';

const definition = (
  at: number,
  filter: string,
  events: Definition['events'] = ['created'],
  subscription = 'alps',
): Definition => ({ subscription, fromUs: t0 + at * minute, events, filter });

const registrations = [{ name: 'alps', subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb' }];

/** Plans the tasks; times are in minutes after `t0`. */
function plan(
  definitions: readonly Definition[],
  [from, to]: readonly [number, number],
  options: { subscriptions?: string[]; reachBack?: boolean } = {},
) {
  const window = { fromUs: t0 + from * minute, toUs: t0 + to * minute };
  return tasksOf({ definitions, registrations, ...window, ...options }).map((task) => ({
    name: `${task.subscription} ${task.event} ${task.filter}`,
    span: [task.fromUs, task.toUs].map((us) => (us - t0) / minute),
    hours: [task.hours.fromUs, task.hours.toUs].map((us) => (us - t0) / hour),
    isEarlier: task.isEarlier,
    subscriptionId: task.subscriptionId,
  }));
}

const spans = (tasks: ReturnType<typeof plan>) => tasks.map(({ name, span }) => [name, ...span]);

it('creates a task for each filter and event, oldest first', () => {
  const definitions = [
    definition(-600, 'A', ['created', 'deleted']),
    definition(-600, 'Z', ['modified'], 'andes'),
    definition(90, 'B', ['created', 'modified']),
  ];
  expect(spans(plan(definitions, [0, 240]))).toEqual([
    ['alps created A', 0, 90],
    ['alps deleted A', 0, 90],
    ['andes modified Z', 0, 240],
    ['alps created B', 90, 240],
    ['alps modified B', 90, 240],
  ]);
});

it('leaves out times without a definition, and subscriptions that were not requested', () => {
  const definitions = [
    definition(30, 'A'),
    definition(60, '', []),
    definition(120, 'B'),
    definition(0, 'Z', ['created'], 'andes'),
  ];
  const alps = { subscriptions: ['alps'] };
  expect(spans(plan(definitions, [0, 240], alps))).toEqual([
    ['alps created A', 30, 60],
    ['alps created B', 120, 240],
  ]);
  expect(plan(definitions, [-60, 0])).toEqual([]);
  expect(plan(definitions, [60, 120], alps)).toEqual([]);
  expect(plan([], [0, 60])).toEqual([]);
});

it('plans times before the earliest definition with its filter, and counts its first hour separately', () => {
  const definitions = [definition(30, 'A'), definition(60, 'B')];
  expect(plan(definitions, [-120, 90], { reachBack: true })).toMatchObject([
    { name: 'alps created A', span: [-120, 30], hours: [-2, 0], isEarlier: true },
    { name: 'alps created A', span: [30, 60], hours: [-2, 1], isEarlier: false },
    { name: 'alps created B', span: [60, 90], hours: [-2, 1], isEarlier: false },
  ]);
});

it('skips a definition that was replaced at once', () => {
  const definitions = [definition(0, 'A'), definition(60, 'B'), definition(60, 'C')];
  expect(spans(plan(definitions, [0, 120]))).toEqual([
    ['alps created A', 0, 60],
    ['alps created C', 60, 120],
  ]);
});

it('uses the id of a registered subscription', () => {
  const definitions = [definition(0, ''), definition(0, '', ['created'], 'gone')];
  const ids = plan(definitions, [0, 60]).map(({ subscriptionId }) => subscriptionId);
  expect(ids).toEqual(['c06f2e68-fb9e-4e22-ac57-49566e8621fb', null]);
});

it('treats an hour as complete when the window has everything that was subscribed in it', () => {
  const hoursOf = (definitions: Definition[], span: readonly [number, number]) =>
    plan(definitions, span).map(({ hours }) => hours);
  const always = [definition(-600, '')];
  expect(hoursOf(always, [0, 120])).toEqual([[0, 2]]);
  expect(hoursOf(always, [1, 119])).toEqual([[1, 1]]);
  // The definition begins within the hour, after the window; or it ends before the window.
  expect(hoursOf([definition(10, '')], [5, 120])).toEqual([[0, 2]]);
  expect(hoursOf([definition(10, '')], [15, 120])).toEqual([[1, 2]]);
  const ended = [definition(-600, ''), definition(100, '', [])];
  expect(hoursOf(ended, [0, 110])).toEqual([[0, 2]]);
  // The part of an earlier filter counts, too.
  const changed = [definition(-600, 'A'), definition(10, 'B')];
  expect(hoursOf(changed, [10, 120])).toEqual([[1, 2]]);
});

const day = 24 * hour;

/** Times are in hours after `t0`. */
const at = (hours: number) => t0 + Math.round(hours * hour);

const since = (from: number, fields: Partial<Definition> = {}): Definition => {
  return { subscription: 'alps', fromUs: at(from), events: ['created'], filter: '', ...fields };
};

/** An hour that was compared `after` hours after its start. */
const compared = (
  hourAt: number,
  after: number,
  fields: Partial<HourCoverage> = {},
): HourCoverage => ({
  subscription: 'alps',
  event: 'created',
  hourUs: at(hourAt),
  expected: 3,
  pushed: 3,
  late: 0,
  recovered: 0,
  missing: 0,
  comparedAtUs: at(hourAt + after),
  ...fields,
});

const gap = (from: number, to: number | null): Gap => ({
  id: 1,
  subscription: 'alps',
  events: ['created'],
  filter: '',
  fromUs: at(from),
  toUs: to === null ? null : at(to),
  reason: 'it was paused',
});

const uptime = (from: number, to: number) => ({ fromUs: at(from), toUs: at(to) });

function due(now: number, known: Partial<DueOptions>) {
  const { tasks, rechecks, earlyChecks } = dueTasks({
    definitions: [since(-1_000)],
    registrations: [],
    coverage: [],
    uptimes: [],
    gaps: [],
    nowUs: at(now),
    settlingUs,
    recheckAfterUs: day,
    comparisonHorizonUs: 30 * day,
    unprunedSinceUs: 0,
    ...known,
  });
  const spans = (list: readonly ReconcileTask[]) =>
    list.map(({ fromUs, toUs }) => [fromUs, toUs].map((us) => (us - t0) / hour));
  return {
    tasks: spans(tasks),
    rechecks: spans(rechecks),
    earlyChecks: spans(earlyChecks),
    all: tasks,
  };
}

const known = (from: number, to: number, after = 2) =>
  Array.from({ length: to - from }, (_, i) => compared(from + i, after));

it('compares an hour half an hour after its end', () => {
  const definitions = [since(0)];
  expect(due(1.49, { definitions }).tasks).toEqual([]);
  expect(due(1.5, { definitions }).tasks).toEqual([[0, 1]]);
  expect(due(3.6, { definitions }).tasks).toEqual([[0, 3]]);
});

it('compares no pruned hours, neither hourly nor early', () => {
  const definitions = [since(0)];
  expect(due(10.5, { definitions, unprunedSinceUs: at(4.2) }).tasks).toEqual([[5, 10]]);
  const uptimes = [uptime(0, 10.1), uptime(10.4, 10.5)];
  const early = due(10.5, { definitions, uptimes, unprunedSinceUs: at(10.3) }).earlyChecks;
  expect(early.map(([from]) => from)).toEqual([10.3]);
});

it('compares only unknown hours, and joins neighbouring ones', () => {
  const definitions = [since(0)];
  const coverage = [...known(0, 2), ...known(5, 6), ...known(8, 10, 1.5)];
  expect(due(10.5, { definitions, coverage }).tasks).toEqual([
    [2, 5],
    [6, 8],
  ]);
  expect(due(10.5, { definitions, coverage: known(0, 10, 1.5) }).tasks).toEqual([]);
});

it('repeats hours that were compared before they had settled, or that have missing events', () => {
  const coverage = [compared(0, 1.2), compared(1, 1.5), compared(2, 2, { missing: 1 })];
  const definitions = [since(0)];
  expect(due(4.4, { definitions, coverage }).tasks).toEqual([
    [0, 1],
    [2, 3],
  ]);
});

it('checks an hour again when it is a day old, whatever happened before', () => {
  const definitions = [since(0)];
  const coverage = [compared(0, 3), ...known(1, 24)];
  const at25 = due(25, { definitions, coverage: [...coverage, ...known(24, 25)] });
  expect(at25.tasks).toEqual([]);
  expect(at25.rechecks).toEqual([[0, 1]]);
  const later = [compared(0, 25), ...coverage.slice(1), ...known(24, 27)];
  const at27 = due(27, { definitions, coverage: later });
  expect(at27.tasks).toEqual([]);
  expect(at27.rechecks).toEqual([[1, 3]]);
});

it('compares no hours before the horizon', () => {
  expect(due(720.5, {}).tasks).toEqual([[1, 720]]);
  expect(due(720.5, { comparisonHorizonUs: day }).tasks).toEqual([[697, 720]]);
});

it('splits hours where the filter changed, and compares the parts as one hour', () => {
  const definitions = [
    since(0.25, { filter: 'A', events: ['created', 'deleted'] }),
    since(1.5, { filter: 'B' }),
    since(3.75, { events: [] }),
  ];
  const { all } = due(10, { definitions });
  const shown = all.map(({ event, filter, fromUs, toUs, hours }) => [
    `${event} ${filter}`,
    ...[fromUs, toUs, hours.fromUs, hours.toUs].map((us) => (us - t0) / hour),
  ]);
  expect(shown).toEqual([
    ['created A', 0.25, 1.5, 0, 4],
    ['deleted A', 0.25, 1.5, 0, 2],
    ['created B', 1.5, 3.75, 0, 4],
  ]);
});

it('checks early what may be missing since the last uptime, after the settled hours', () => {
  const minutes = (count: number) => count / 60;
  const now = 10 + minutes(20);
  const definitions = [since(0)];
  const nights = [uptime(0, 8 + minutes(40)), uptime(now - minutes(1), now)];
  const { tasks, earlyChecks } = due(now, { definitions, uptimes: nights, coverage: known(0, 7) });
  expect(tasks).toEqual([[7, 9]]);
  expect(earlyChecks).toEqual([[9, now - minutes(2)]]);
  const short = [uptime(0, 10 + minutes(10)), uptime(now - minutes(1), now)];
  expect(due(now, { definitions, uptimes: short }).earlyChecks).toEqual([
    [10 + minutes(5), now - minutes(2)],
  ]);
});

it('checks nothing early without need', () => {
  const now = 10.4;
  // Never up before; up all the time; down, but compared or checked since.
  expect(due(now, { uptimes: [] }).earlyChecks).toEqual([]);
  const up = uptime(0, now - 1 / 60);
  expect(due(now, { uptimes: [up] }).earlyChecks).toEqual([]);
  const before = [uptime(-5, 0), uptime(8, now)];
  expect(due(now, { uptimes: before }).earlyChecks).toEqual([]);
  const recent = [uptime(-5, 9), uptime(10, now)];
  expect(due(now, { uptimes: recent, earlyCheckedAtUs: at(10.2) }).earlyChecks).toEqual([]);
  expect(due(now, { uptimes: recent, earlyCheckedAtUs: at(9.9) }).earlyChecks).toHaveLength(1);
});

it('checks nothing early because of an outdated uptime: the caller is running', () => {
  const uptimes = [uptime(0, 10)];
  for (const now of [10.1, 10.3, 11.4]) expect(due(now, { uptimes }).earlyChecks).toEqual([]);
});

it('ignores comparisons dated by a fast clock', () => {
  const definitions = [since(0)];
  const minutes = (count: number) => count / 60;
  const coverage = [compared(0, 24), compared(1, 2), compared(2, 1.5 + minutes(5))];
  expect(due(3.5, { definitions, coverage }).tasks).toEqual([[0, 1]]);
  expect(due(3.5 - minutes(1), { definitions, coverage }).tasks).toEqual([[0, 1]]);
  const ahead = [compared(0, 2), compared(1, 2), compared(2, 1.5 + minutes(5.1))];
  expect(due(3.5, { definitions, coverage: ahead }).tasks).toEqual([[2, 3]]);
});

it('checks early after a finished gap, for that subscription only', () => {
  const uptimes = [uptime(0, 10.4)];
  const definitions = [
    since(0),
    since(0, { subscription: 'andes', events: ['created', 'deleted'] }),
  ];
  const earlyChecksOf = (gaps: Gap[]) => {
    const { earlyChecks } = dueTasks({
      ...{ definitions, registrations: [], coverage: [], uptimes, gaps, nowUs: at(10.4) },
      ...{ settlingUs, recheckAfterUs: day, comparisonHorizonUs: day, unprunedSinceUs: 0 },
    });
    return earlyChecks.map(({ subscription, event, fromUs, toUs }) => [
      subscription,
      event,
      ...[fromUs, toUs].map((us) => (us - t0) / minute),
    ]);
  };
  expect(earlyChecksOf([gap(9.5, 10.2)])).toEqual([['alps', 'created', 565, 622]]);
  expect(earlyChecksOf([gap(9.5, null)])).toEqual([]);
  expect(earlyChecksOf([gap(7, 8)])).toEqual([]);
});
