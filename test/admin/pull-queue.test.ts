/** The age of the oldest unread entry of a queue. */
import { expect, it } from 'vitest';
import { oldestEntryAgeUs, type QueueState } from '../../src/admin/pull-queue.ts';
import { hourUs } from '../../src/core/terms/dates.ts';
import { queueState, readAtUs } from './sample-queue.ts';

const unread = { length: 1_000, oldestAtUs: readAtUs - 6 * hourUs };

it.each<[string, hours: number, Partial<QueueState>, hoursOld: number | null]>([
  ['an empty one', 0, {}, 0],
  ['an empty one, minutes later', 0.05, {}, 0],
  ['one that was emptied long ago', 24, { emptiedAtUs: readAtUs - hourUs }, 25],
  ['one with entries', 10, unread, 16],
  ['one without a length', 10, { ...unread, length: null }, 16],
  ['a clock that was set back', -10, unread, 0],
  ['an unknown one', 5, { length: null, emptiedAtUs: null, readAtUs: null }, null],
  ['one whose entries have no date', 0, { length: 10 }, null],
])('the oldest entry of %s has its age', (_what, hours, fields, hoursOld) => {
  const ageUs = oldestEntryAgeUs(queueState(fields), readAtUs + hours * hourUs);
  expect(ageUs).toBe(hoursOld === null ? null : hoursOld * hourUs);
});
