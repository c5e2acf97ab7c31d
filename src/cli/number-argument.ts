/** Reads whole numbers on the command line. */
import { InvalidArgumentError } from 'commander';

/** A parser for whole numbers from `min` on. */
export function wholeNumber(min = 0): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < min) {
      throw new InvalidArgumentError(`Use a whole number from ${min} on.`);
    }
    return value;
  };
}

/** A number above 0, such as a rate. */
export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!(value > 0) || !Number.isFinite(value)) {
    throw new InvalidArgumentError('Use a number above 0.');
  }
  return value;
}
