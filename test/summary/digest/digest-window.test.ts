/** The windows of digests: in UTC, without a gap, and weeks from Monday on. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestWindows } from '../../../src/domain/summaries.ts';
import { windowAt, windowsIn } from '../../../src/summary/digest/digest-facts.ts';

const us = (iso: string) => Date.parse(iso) * 1000;
const iso = (atUs: number) => new Date(atUs / 1000).toISOString().slice(0, 16);

describe('windowAt', () => {
  it.each([
    ['hour', '2024-05-20T10:15:00Z', '2024-05-20T10:00', '2024-05-20T11:00'],
    ['hour', '2024-05-20T10:00:00Z', '2024-05-20T10:00', '2024-05-20T11:00'],
    ['day', '2024-02-29T23:59:59.999Z', '2024-02-29T00:00', '2024-03-01T00:00'],
    ['week', '2024-05-20T00:00:00Z', '2024-05-20T00:00', '2024-05-27T00:00'],
    ['week', '2024-05-19T23:59:59Z', '2024-05-13T00:00', '2024-05-20T00:00'],
    ['week', '2025-01-01T12:00:00Z', '2024-12-30T00:00', '2025-01-06T00:00'],
    ['week', '1970-01-01T00:00:00Z', '1969-12-29T00:00', '1970-01-05T00:00'],
  ] as const)('finds the %s that holds %s', (window, at, from, until) => {
    const { fromUs, untilUs } = windowAt(window, us(at));
    expect([iso(fromUs), iso(untilUs)]).toEqual([from, until]);
  });
});

describe('windowsIn', () => {
  it('are cut to the span, and come in their order', () => {
    const windows = windowsIn('day', us('2024-05-20T18:30:00Z'), us('2024-05-22T06:00:00Z'));
    expect(windows.map(({ fromUs, untilUs }) => [iso(fromUs), iso(untilUs)])).toEqual([
      ['2024-05-20T18:30', '2024-05-21T00:00'],
      ['2024-05-21T00:00', '2024-05-22T00:00'],
      ['2024-05-22T00:00', '2024-05-22T06:00'],
    ]);
  });

  it('are none in an empty span', () => {
    const atUs = us('2024-05-20T00:00:00Z');
    expect(windowsIn('hour', atUs, atUs)).toEqual([]);
    expect(windowsIn('hour', atUs, atUs - 1)).toEqual([]);
  });

  it('cover any span without gap or overlap, each within one window', () => {
    const moment = fc.integer({ min: 0, max: 4_000_000_000_000_000 });
    const lengthUs = fc.integer({ min: 1, max: 30 * 86_400_000_000 });
    fc.assert(
      fc.property(fc.constantFrom(...digestWindows), moment, lengthUs, (window, fromUs, length) => {
        const windows = windowsIn(window, fromUs, fromUs + length);
        expect(windows[0]?.fromUs).toBe(fromUs);
        expect(windows.at(-1)?.untilUs).toBe(fromUs + length);
        for (const [index, one] of windows.entries()) {
          expect(one.untilUs).toBeGreaterThan(one.fromUs);
          expect(windowAt(window, one.fromUs)).toEqual(windowAt(window, one.untilUs - 1));
          if (index > 0) expect(windows[index - 1]?.untilUs).toBe(one.fromUs);
        }
      }),
      { numRuns: 200 },
    );
  });
});
