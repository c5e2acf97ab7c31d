/** Tasks of a comparison: for a requested window, and those that are due automatically. */
import { expect, it } from 'vitest';
import type { Definition, HourCoverage } from '../../../src/features/coverage/completeness.ts';
import {
  type DueOptions,
  type DuePart,
  dueKinds,
  mergeWindows,
  tasksOf,
} from '../../../src/features/coverage/tasks.ts';
import { hour, minute, t0 } from './set-up.ts';

const definition = (
  at: number,
  filter: string,
  events: Definition['events'] = ['created'],
  subscription = 'alps',
): Definition => ({ subscription, fromUs: t0 + at * minute, events, filter });

const id = 'c06f2e68-fb9e-4e22-ac57-49566e8621fb';
const registrations = [{ name: 'alps', subscriptionId: id }];

/** Plans the tasks; times are in minutes after `t0`. */
function plan(
  definitions: readonly Definition[],
  [from, to]: readonly [number, number],
  subscriptions = ['alps', 'andes'],
) {
  const window = { fromUs: t0 + from * minute, toUs: t0 + to * minute };
  return tasksOf({ definitions, registrations, window, subscriptions }).map((task) => ({
    name: `${task.subscription} ${task.event} ${task.filter}`,
    span: [task.fromUs, task.toUs].map((us) => (us - t0) / minute),
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
  const tasks = plan(definitions, [0, 240]);
  expect(tasks.map(({ subscriptionId }) => subscriptionId)).toEqual([id, id, null, id, id]);
  expect(spans(tasks)).toEqual([
    ['alps created A', 0, 90],
    ['alps deleted A', 0, 90],
    ['andes modified Z', 0, 240],
    ['alps created B', 90, 240],
    ['alps modified B', 90, 240],
  ]);
});

it('leaves out times without a definition, and subscriptions that were not requested', () => {
  const definitions = [
    definition(0, 'A'),
    definition(60, '', []),
    definition(120, 'B'),
    definition(0, 'Z', ['created'], 'andes'),
  ];
  expect(spans(plan(definitions, [0, 240], ['alps']))).toEqual([
    ['alps created A', 0, 60],
    ['alps created B', 120, 240],
  ]);
  expect(plan(definitions, [60, 120], ['alps'])).toEqual([]);
  expect(plan([], [0, 60])).toEqual([]);
  // A definition that was replaced at once.
  const replaced = [definition(0, 'A'), definition(60, 'B'), definition(60, 'C')];
  expect(spans(plan(replaced, [0, 120]))).toEqual([
    ['alps created A', 0, 60],
    ['alps created C', 60, 120],
  ]);
});

it('plans times before the earliest definition separately, with its filter', () => {
  const definitions = [definition(30, 'A'), definition(60, 'B')];
  expect(plan(definitions, [-120, 90])).toMatchObject([
    { name: 'alps created A', span: [-120, 30], isEarlier: true },
    { name: 'alps created A', span: [30, 60], isEarlier: false },
    { name: 'alps created B', span: [60, 90], isEarlier: false },
  ]);
});

/** Times are in hours after `t0`. */
const at = (hours: number) => t0 + Math.round(hours * hour);
const minutes = (count: number) => count / 60;

const since = (from: number, fields: Partial<Definition> = {}): Definition => {
  return { subscription: 'alps', fromUs: at(from), events: ['created'], filter: '', ...fields };
};

/** An hour that was compared `after` hours after its start. */
const compared = (hourAt: number, after: number, missing = 0): HourCoverage => ({
  ...{
    subscription: 'alps',
    event: 'created',
    hourUs: at(hourAt),
    comparedAtUs: at(hourAt + after),
  },
  ...{ expected: 3, pushed: 3 - missing, late: 0, recovered: 0, missing },
});

const known = (from: number, to: number, after = 2) =>
  Array.from({ length: to - from }, (_, i) => compared(from + i, after));

function due(now: number, given: Partial<DueOptions>) {
  return dueKinds({
    definitions: [since(0)],
    registrations: [],
    coverage: [],
    gaps: [],
    // The last round was a moment ago.
    checkedAtUs: at(now),
    nowUs: at(now),
    unprunedSinceUs: 0,
    ...given,
  }).flatMap(({ parts }) => parts);
}

const windowsOf = (parts: readonly DuePart[], isEarly = false) =>
  parts.filter((part) => part.isEarly === isEarly).map(({ window }) => window);

/** Windows as text, such as "0-1 3-4", in hours. */
const shown = (windows: readonly DuePart['window'][]) =>
  windows
    .map(({ fromUs, toUs }) => [fromUs, toUs].map((us) => (us - t0) / hour).join('-'))
    .join(' ');

const dayOld = [compared(0, 3), ...known(1, 25)];

it.each<[title: string, now: number, Partial<DueOptions>, tasks: string]>([
  ['no hour before half an hour after its end', 1.49, {}, ''],
  ['an hour half an hour after its end', 1.5, {}, '0-1'],
  ['several hours', 3.6, {}, '0-3'],
  ['no pruned hours', 10.5, { unprunedSinceUs: at(4.2) }, '5-10'],
  [
    'only unknown hours',
    10.5,
    { coverage: [...known(0, 2), ...known(5, 6), ...known(8, 10, 1.5)] },
    '2-5 6-8',
  ],
  ['nothing that is known', 10.5, { coverage: known(0, 10, 1.5) }, ''],
  [
    'hours that were compared before they had settled, or that have missing events',
    4.4,
    { coverage: [compared(0, 1.2), compared(1, 1.5), compared(2, 2, 1)] },
    '0-1 2-3',
  ],
  ['an hour again when it is a day old', 25, { coverage: dayOld }, '0-1'],
  [
    'only the others then',
    27,
    { coverage: [compared(0, 25), ...dayOld.slice(1), ...known(25, 27)] },
    '1-3',
  ],
  ['no hours before the horizon', 720.5, { definitions: [since(-1_000)] }, '1-720'],
  [
    'hours whose comparison was dated by a fast clock',
    3.5,
    { coverage: [compared(0, 24), compared(1, 2), compared(2, 1.5 + minutes(5))] },
    '0-1',
  ],
  [
    'those dated too far ahead',
    3.5,
    { coverage: [...known(0, 2), compared(2, 1.5 + minutes(5.1))] },
    '2-3',
  ],
])('compares %s', (_title, now, given, tasks) => {
  expect(shown(mergeWindows(windowsOf(due(now, given))))).toBe(tasks);
});

it('divides hours into longer and longer parts', () => {
  expect(shown(windowsOf(due(10.6, {})))).toBe('0-1 1-3 3-7 7-10');
});

it('splits a part where the filter changed', () => {
  const definitions = [
    since(0.25, { filter: 'A', events: ['created', 'deleted'] }),
    since(1.5, { filter: 'B' }),
    since(3.75, { events: [] }),
  ];
  const tasks = due(10, { definitions }).flatMap((part) => part.tasks);
  const parts = tasks.map(({ event, filter, fromUs, toUs }) => [
    `${event} ${filter}`,
    ...[fromUs, toUs].map((us) => (us - t0) / hour),
  ]);
  expect(parts).toEqual([
    ['created A', 0.25, 1],
    ['created A', 1, 1.5],
    ['created B', 1.5, 3],
    ['created B', 3, 3.75],
    ['deleted A', 0.25, 1],
    ['deleted A', 1, 1.5],
  ]);
});

it.each<[title: string, now: number, Partial<DueOptions>, from: number | null]>([
  ['the time after the settled hours after a start', 10 + minutes(20), { checkedAtUs: null }, 9],
  ['the time without a round after a sleep', 10.4, { checkedAtUs: at(10) }, 10],
  ['the time after the settled hours after a long sleep', 10.6, { checkedAtUs: at(2) }, 10],
  ['nothing that was pruned', 10.5, { checkedAtUs: null, unprunedSinceUs: at(10.3) }, 10.3],
  ['nothing after a round some minutes ago', 10.4, { checkedAtUs: at(10.1) }, null],
  ['nothing in the first minutes of an hour', 10.51, { checkedAtUs: at(10.5) }, null],
])('checks early %s', (_title, now, given, from) => {
  const spans = windowsOf(due(now, given), true).map(({ fromUs, toUs }) => [fromUs, toUs]);
  expect(spans).toEqual(from === null ? [] : [[at(from), at(now - minutes(2))]]);
});

it('checks early after a finished gap, for that subscription only', () => {
  const all = { subscription: 'andes', events: ['created', 'deleted'] } as const;
  const given = { definitions: [since(0), since(0, all)], checkedAtUs: at(10.15) };
  const gap = { id: 1, subscription: 'alps', events: [], filter: '', reason: 'it was paused' };
  const checksOf = (from: number, toUs: number | null) =>
    due(10.4, { ...given, gaps: [{ ...gap, fromUs: at(from), toUs }] })
      .filter(({ isEarly }) => isEarly)
      .flatMap(({ tasks }) => tasks);
  const [check, ...others] = checksOf(9.5, at(10.2));
  expect(others).toEqual([]);
  expect(check).toMatchObject({ subscription: 'alps', event: 'created' });
  expect([check?.fromUs, check?.toUs]).toEqual([t0 + 565 * minute, t0 + 622 * minute]);
  expect(checksOf(9.5, null)).toEqual([]);
  expect(checksOf(9.5, at(10.1))).toEqual([]);
});
