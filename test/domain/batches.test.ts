/** A stream is taken by the batch, in its order, and read no further than that. */
import { expect, it } from 'vitest';
import { batches } from '../../src/domain/streams.ts';
import { collect } from '../helpers/deliveries.ts';

/** Numbers from 1 on, and how far they were read. */
function numbers(count: number) {
  const state = { read: 0, ended: false };
  const stream = (async function* () {
    try {
      while (state.read < count) {
        state.read += 1;
        yield state.read;
      }
    } finally {
      state.ended = true;
    }
  })();
  return { state, stream };
}

it.each([
  [0, []],
  [2, [[1, 2]]],
  [3, [[1, 2, 3]]],
  [7, [[1, 2, 3], [4, 5, 6], [7]]],
])('gives %i elements by threes', async (count, expected) => {
  expect(await collect(batches(numbers(count).stream, 3))).toEqual(expected);
});

it('reads one batch ahead, and ends the stream when nobody wants more', async () => {
  const { state, stream } = numbers(100);
  for await (const batch of batches(stream, 4)) {
    expect(batch).toEqual([1, 2, 3, 4]);
    expect(state).toEqual({ read: 4, ended: false });
    break;
  }
  expect(state).toEqual({ read: 4, ended: true });
});

it('rejects as the stream does', async () => {
  const failing = async function* () {
    yield 1;
    throw new Error('gone');
  };
  await expect(collect(batches(failing(), 4))).rejects.toThrow('gone');
});
