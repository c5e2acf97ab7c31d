/** Which sequence numbers were answered with 200, kept in a bit each and told as ranges. */

/** First and last sequence number of a run without a hole, both included. */
export type SequenceRange = readonly [first: number, last: number];

/** A set of sequence numbers, which are whole numbers from 0. */
export interface AnsweredSet {
  add(sequence: number): void;
  /** Every added number, in rising order. */
  ranges(): SequenceRange[];
}

/** Creates an empty set; memory grows with the largest number added, by one bit each. */
export function createAnsweredSet(): AnsweredSet {
  let bits = new Uint8Array(1 << 16);
  const has = (sequence: number) => ((bits[sequence >>> 3] ?? 0) & (1 << (sequence & 7))) !== 0;
  return {
    add(sequence) {
      const index = sequence >>> 3;
      if (index >= bits.length) {
        const larger = new Uint8Array(Math.max(bits.length * 2, index + 1));
        larger.set(bits);
        bits = larger;
      }
      bits[index] = (bits[index] ?? 0) | (1 << (sequence & 7));
    },
    ranges() {
      const ranges: SequenceRange[] = [];
      let first = -1;
      for (let sequence = 0; sequence <= bits.length * 8; sequence += 1) {
        const present = has(sequence);
        if (present && first === -1) first = sequence;
        if (present || first === -1) continue;
        ranges.push([first, sequence - 1]);
        first = -1;
      }
      return ranges;
    },
  };
}

/** How many numbers the ranges hold. */
export function countInRanges(ranges: readonly SequenceRange[]): number {
  return ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}
