/** The estimate of a queue: number and age of unread entries, and the time until some are lost. */
import { expect, it } from 'vitest';
import { type QueueState, queueOutlook, recordAgeMaxUs } from '../../src/admin/pull-queue.ts';
import { hourUs } from '../../src/core/terms/dates.ts';
import { queueState, readAtUs } from './sample-queue.ts';

const dayUs = 24 * hourUs;

const [hours6, unknown] = [
  { length: 1_000, oldestAtUs: readAtUs - 6 * hourUs },
  { length: null, emptiedAtUs: null, readAtUs: null, entriesPerHour: null },
];

it.each<[string, hours: number, Partial<QueueState>, object]>([
  ['an empty one has no entry', 0, {}, { length: 0, oldestAgeUs: 0, leftUs: recordAgeMaxUs }],
  ['half an entry is none', 0.25, { entriesPerHour: 1 }, { length: 0, oldestAgeUs: 0 }],
  ['an expected entry', 0.75, { entriesPerHour: 1 }, { length: 1, oldestAgeUs: 0.75 * hourUs }],
  [
    'entries at the usual rate since it was emptied',
    24,
    {},
    { length: 24 * 60, oldestAgeUs: dayUs, leftUs: recordAgeMaxUs - dayUs },
  ],
  ['their age since then', 2, { emptiedAtUs: readAtUs - hourUs }, { oldestAgeUs: 3 * hourUs }],
  ['the last length', 0, hours6, { length: 1_000, leftUs: recordAgeMaxUs - 6 * hourUs }],
  ['growth at the usual rate', 10, hours6, { length: 1_600, oldestAgeUs: 16 * hourUs }],
  ['no growth without a rate', 10, { ...hours6, entriesPerHour: null }, { length: 1_000 }],
  ['the age without a length', 10, { ...hours6, length: null }, { oldestAgeUs: 16 * hourUs }],
  [
    'the time until it is full',
    1,
    { ...hours6, length: 99_000, entriesPerHour: 100 },
    { leftUs: expect.closeTo(9 * hourUs, -3) },
  ],
  ['no time when it is full', 1, { ...hours6, lengthMax: 1_060 }, { leftUs: 0 }],
  ['no time after three days', 66, hours6, { leftUs: 0 }],
  ['no negative time', 500, hours6, { leftUs: 0, length: 31_000 }],
  [
    'no negative age when the clocks differ',
    0,
    { length: 1, oldestAtUs: readAtUs + hourUs, readAtUs: readAtUs + hourUs },
    { length: 1, oldestAgeUs: 0 },
  ],
  ['nothing of an unknown one', 5, unknown, { length: null, oldestAgeUs: null, leftUs: null }],
  [
    'no age without a date',
    0,
    { length: 10, lengthMax: 70 },
    { length: 10, oldestAgeUs: null, leftUs: hourUs },
  ],
])('the outlook of a queue has %s', (_what, hours, fields, expected) => {
  const outlook = queueOutlook(queueState(fields), readAtUs + hours * hourUs);
  expect(outlook).toMatchObject(expected);
});
