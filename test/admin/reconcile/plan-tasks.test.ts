/** What is to be compared in a window, by the definitions that held. */
import { expect, it } from 'vitest';
import type { Definition } from '../../../src/domain/coverage.ts';
import { tasksOf } from '../../../src/reconcile/tasks.ts';
import { hour, minute, t0 } from './reconcile-world.ts';

const definition = (
  at: number,
  filter: string,
  events: Definition['events'] = ['created'],
  subscription = 'alps',
): Definition => ({ subscription, fromUs: t0 + at * minute, events, filter });

const registrations = [{ name: 'alps', subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb' }];

/** Times in minutes after `t0`. */
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

it('makes one task for each filter and kind of event, oldest first', () => {
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

it('leaves out what was asked for by others, before, or after a subscription was given up', () => {
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

it('plans what lies before the earliest definition with it, and counts its first hour apart', () => {
  const definitions = [definition(30, 'A'), definition(60, 'B')];
  expect(plan(definitions, [-120, 90], { reachBack: true })).toMatchObject([
    { name: 'alps created A', span: [-120, 30], hours: [-2, 0], isEarlier: true },
    { name: 'alps created A', span: [30, 60], hours: [-2, 1], isEarlier: false },
    { name: 'alps created B', span: [60, 90], hours: [-2, 1], isEarlier: false },
  ]);
});

it('passes over a definition that was replaced at once', () => {
  const definitions = [definition(0, 'A'), definition(60, 'B'), definition(60, 'C')];
  expect(spans(plan(definitions, [0, 120]))).toEqual([
    ['alps created A', 0, 60],
    ['alps created C', 60, 120],
  ]);
});

it('knows the Id of a subscription that is registered', () => {
  const definitions = [definition(0, ''), definition(0, '', ['created'], 'gone')];
  const ids = plan(definitions, [0, 60]).map(({ subscriptionId }) => subscriptionId);
  expect(ids).toEqual(['c06f2e68-fb9e-4e22-ac57-49566e8621fb', null]);
});

it('takes an hour for whole when nothing of it that was asked for is left out', () => {
  const hoursOf = (definitions: Definition[], span: readonly [number, number]) =>
    plan(definitions, span).map(({ hours }) => hours);
  const always = [definition(-600, '')];
  expect(hoursOf(always, [0, 120])).toEqual([[0, 2]]);
  expect(hoursOf(always, [1, 119])).toEqual([[1, 1]]);
  // It began within the hour, after the window did; or ended before the window does.
  expect(hoursOf([definition(10, '')], [5, 120])).toEqual([[0, 2]]);
  expect(hoursOf([definition(10, '')], [15, 120])).toEqual([[1, 2]]);
  const ended = [definition(-600, ''), definition(100, '', [])];
  expect(hoursOf(ended, [0, 110])).toEqual([[0, 2]]);
  // The part of an earlier filter counts, too.
  const changed = [definition(-600, 'A'), definition(10, 'B')];
  expect(hoursOf(changed, [10, 120])).toEqual([[1, 2]]);
});
