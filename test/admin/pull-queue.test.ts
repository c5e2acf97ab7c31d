/** The estimate of a queue: number and age of unread entries, and the time until some are lost. */
import { describe, expect, it } from 'vitest';
import { type QueueState, queueOutlook, recordAgeMaxUs } from '../../src/admin/pull-queue.ts';
import { hourUs } from '../../src/core/terms/time-units.ts';
import { queueState, readAtUs } from './sample-queue.ts';

const dayUs = 24 * hourUs;

/** Estimates that many hours after the last answer. */
const outlookAfter = (hours: number, fields: Partial<QueueState> = {}) =>
  queueOutlook(queueState(fields), readAtUs + hours * hourUs);

describe('the outlook of an empty queue', () => {
  it('is no entry, and the time until a new entry loses its record', () => {
    expect(outlookAfter(0)).toEqual({ length: 0, oldestAgeUs: 0, leftUs: recordAgeMaxUs });
  });

  it('is no entry while less than half an entry is expected', () => {
    const slow = { entriesPerHour: 1 };
    expect(outlookAfter(0.25, slow)).toMatchObject({ length: 0, oldestAgeUs: 0 });
    expect(outlookAfter(0.75, slow)).toMatchObject({ length: 1, oldestAgeUs: 0.75 * hourUs });
  });

  it('has entries since it was emptied, at the usual rate, when it was not read for a day', () => {
    expect(outlookAfter(24)).toEqual({
      length: 24 * 60,
      oldestAgeUs: dayUs,
      leftUs: recordAgeMaxUs - dayUs,
    });
  });

  it('counts its age from the last time that it was empty, not from the last answer', () => {
    const { oldestAgeUs } = outlookAfter(2, { emptiedAtUs: readAtUs - hourUs });
    expect(oldestAgeUs).toBe(3 * hourUs);
  });
});

describe('the outlook of a queue with entries', () => {
  const grown = { length: 1_000, oldestAtUs: readAtUs - 6 * hourUs };

  it('grows at the usual rate since the last answer', () => {
    expect(outlookAfter(0, grown).length).toBe(1_000);
    expect(outlookAfter(10, grown).length).toBe(1_600);
    expect(outlookAfter(10, { ...grown, entriesPerHour: null }).length).toBe(1_000);
  });

  it('has the age of its oldest entry', () => {
    expect(outlookAfter(10, grown).oldestAgeUs).toBe(16 * hourUs);
    expect(outlookAfter(10, { ...grown, length: null }).oldestAgeUs).toBe(16 * hourUs);
  });

  it('ends when it is full, or when an entry loses its record, whichever is earlier', () => {
    expect(outlookAfter(0, grown).leftUs).toBe(recordAgeMaxUs - 6 * hourUs);
    const full = outlookAfter(1, { ...grown, length: 99_000, entriesPerHour: 100 });
    expect(full.leftUs).toBeCloseTo(9 * hourUs, -3);
    expect(outlookAfter(1, { ...grown, lengthMax: 1_060 }).leftUs).toBe(0);
  });

  it('has no time left after three days, and never less than none', () => {
    expect(outlookAfter(66, grown).leftUs).toBe(0);
    expect(outlookAfter(500, grown)).toMatchObject({ leftUs: 0, length: 31_000 });
    expect(outlookAfter(5_000, grown).leftUs).toBe(0);
  });

  it('is not younger than now when the clocks differ', () => {
    const ahead = { length: 1, oldestAtUs: readAtUs + hourUs, readAtUs: readAtUs + hourUs };
    expect(outlookAfter(0, ahead)).toMatchObject({ length: 1, oldestAgeUs: 0 });
  });
});

describe('the outlook of a queue that is not known', () => {
  const unknown = { length: null, emptiedAtUs: null, readAtUs: null, entriesPerHour: null };

  it('is unknown', () => {
    expect(outlookAfter(5, unknown)).toEqual({ length: null, oldestAgeUs: null, leftUs: null });
  });

  it('has no age without the date of its oldest entry', () => {
    const undated = { length: 10, lengthMax: 70 };
    expect(outlookAfter(0, undated)).toEqual({ length: 10, oldestAgeUs: null, leftUs: hourUs });
  });
});
