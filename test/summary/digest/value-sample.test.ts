/** The middle of many values in bounded memory, and the most frequent of many names. */
import { describe, expect, it } from 'vitest';
import { createTally, createValueSample, standingOut } from '../../../src/summary/digest/tally.ts';

function rangeOf(values: readonly number[], keptMax: number) {
  const sample = createValueSample(keptMax);
  for (const value of values) sample.add(value);
  return sample.range();
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe('a sample of values', () => {
  it('is no sample while there is room: the median is exact', () => {
    expect(rangeOf([], 10)).toBeNull();
    expect(rangeOf([7], 10)).toEqual({ count: 1, min: 7, median: 7, max: 7, isSampled: false });
    expect(rangeOf([9, 1, 5], 10)).toMatchObject({ min: 1, median: 5, max: 9 });
    expect(rangeOf([9, 1, 5, 7], 10)).toMatchObject({ median: 5 });
    expect(rangeOf(upTo(1000), 1000)).toMatchObject({ median: 500, isSampled: false });
  });

  it('takes the median of the first values when there is no room for more, and says so', () => {
    const range = { count: 5, min: 1, max: 9, isSampled: true };
    expect(rangeOf([5, 9, 4, 1, 1], 3)).toEqual({ ...range, median: 5 });
    expect(rangeOf([4, 1, 1, 9, 5], 3)).toEqual({ ...range, median: 1 });
    expect(rangeOf(upTo(50_000), 10)).toMatchObject({ count: 50_000, min: 1, max: 50_000 });
  });
});

describe('a tally', () => {
  it('gives the most frequent names, equal ones by the alphabet, and the rest as numbers', () => {
    const tally = createTally(100);
    for (const name of 'bbbaacccdef') tally.add(name);
    expect(tally.ranking(3)).toEqual({
      top: [
        { name: 'b', count: 3 },
        { name: 'c', count: 3 },
        { name: 'a', count: 2 },
      ],
      others: { names: 3, count: 3, most: 1 },
    });
  });

  it('tells which names stand out from those that are not told', () => {
    const tally = createTally(100);
    for (const name of 'bbbaacde') tally.add(name);
    const { top, others } = standingOut(tally.ranking(4));
    expect(top.map(({ name }) => name)).toEqual(['b', 'a']);
    expect(others).toEqual({ names: 3, count: 3, most: 1 });
    expect(standingOut(tally.ranking(5)).top).toHaveLength(5);
    expect(standingOut(tally.ranking(1)).top).toEqual([{ name: 'b', count: 3 }]);
  });

  it('holds no more names than it may', () => {
    const tally = createTally(2);
    for (const name of ['a', 'b', 'c', 'd', 'a']) tally.add(name);
    expect(tally.ranking(5)).toMatchObject({
      top: [
        { name: 'a', count: 2 },
        { name: 'b', count: 1 },
      ],
      others: { count: 2 },
    });
  });
});
