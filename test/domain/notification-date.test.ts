/** Dates of the catalogue: what is read, what is not, and that writing and reading agree. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDateUs, parseDate } from '../../src/domain/dates.ts';
import { readOne, varied } from './sample-notification.ts';

const secondUs = Date.UTC(2026, 4, 1, 14, 20, 5) * 1000;
/** The microseconds that the first n digits of this fraction make. */
const digits = '123456789';
const fractionUs = [
  0, 100_000, 120_000, 123_000, 123_400, 123_450, 123_456, 123_456, 123_456, 123_456,
];

describe('a date', () => {
  const cases = fractionUs.flatMap((us, count) =>
    ['Z', ''].map((zone) => {
      const fraction = count === 0 ? '' : `.${digits.slice(0, count)}`;
      return { text: `2026-05-01T14:20:05${fraction}${zone}`, us: secondUs + us, zone };
    }),
  );

  it.each(cases)('$text is read, digits below a microsecond are cut', ({ text, us, zone }) => {
    expect(parseDate(text)).toEqual({ us, zoned: zone === 'Z' });
    expect(readOne(varied({ NotificationDate: text }))).toMatchObject({
      notificationDateUs: us,
      drift: zone === 'Z' ? [] : ['notification-date-without-zone'],
    });
  });

  it.each([
    ['2026-05-01T16:20:05+02:00', secondUs],
    ['2026-05-01T16:20:05+0200', secondUs],
    ['2026-05-01T08:50:05-05:30', secondUs],
    ['2026-05-01 14:20:05Z', secondUs],
    ['2026-05-01t14:20:05z', secondUs],
    [' 2026-05-01T14:20:05Z\n', secondUs],
    ['2026-05-01T14:20:05,5Z', secondUs + 500_000],
    ['2026-05-01T14:20Z', secondUs - 5_000_000],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29) * 1000],
    ['1969-12-31T23:59:59.999999Z', -1],
  ])('%j is read', (text, us) => {
    expect(parseDate(text)).toEqual({ us, zoned: true });
  });

  it('without a time is midnight, UTC', () => {
    expect(parseDate('2026-05-01')).toEqual({ us: Date.UTC(2026, 4, 1) * 1000, zoned: false });
  });

  it.each([
    '',
    'yesterday',
    '2026',
    '2026-05',
    '20260501',
    '2026-00-01',
    '2026-13-01',
    '2026-02-29',
    '2026-04-31T00:00:00Z',
    '2026-05-00T00:00:00Z',
    '2026-05-01T24:00:00Z',
    '2026-05-01T14:60:00Z',
    '2026-05-01T14:20:60Z',
    '2026-05-01T14Z',
    '2026-05-01T14:20:05.Z',
    '2026-05-01T14:20:05.1234567890Z',
    '2026-05-01T14:20:05 Europe/Rome',
    '2026-05-01T14:20:05+99:99',
    '2026-05-01T14:20:05Zulu',
    'x2026-05-01T14:20:05Z',
    '+02026-05-01T14:20:05Z',
    '1777645205',
  ])('%j is none', (text) => {
    expect(parseDate(text)).toBeNull();
  });
});

const exactUs = fc.integer({ min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER });

describe('writing a date', () => {
  it('gives six digits and UTC', () => {
    expect(formatDateUs(0)).toBe('1970-01-01T00:00:00.000000Z');
    expect(formatDateUs(secondUs + 7)).toBe('2026-05-01T14:20:05.000007Z');
    expect(formatDateUs(-1)).toBe('1969-12-31T23:59:59.999999Z');
  });

  it('and reading it gives the same moment', () => {
    fc.assert(
      fc.property(exactUs, (us) => {
        expect(parseDate(formatDateUs(us))).toEqual({ us, zoned: true });
      }),
    );
  });

  it('keeps the order of moments', () => {
    fc.assert(
      fc.property(exactUs, exactUs, (a, b) => {
        expect(formatDateUs(a) < formatDateUs(b)).toBe(a < b);
      }),
    );
  });

  it('reads as the platform does, to the millisecond, from the year 1684 to 2255', () => {
    const anyDate = fc.date({
      // Beyond these, microseconds would no longer be exact, and there is no date.
      min: new Date(-9_007_199_254_740),
      max: new Date(9_007_199_254_740),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(anyDate, (date) => {
        expect(Math.round((parseDate(date.toISOString())?.us ?? Number.NaN) / 1000)).toBe(
          date.getTime(),
        );
      }),
    );
  });
});
