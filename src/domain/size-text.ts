/** Sizes for people. */

const units = [
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
] as const;

/** Such as `4.2 GiB`, `63 MiB` or `0 KiB`: rounded down, so that nothing free is promised that is not. */
export function sizeText(bytes: number): string {
  const [unit, size] = units.find((one) => bytes >= one[1]) ?? units[2];
  const amount = bytes / size;
  return `${amount < 10 ? Math.floor(amount * 10) / 10 : Math.floor(amount)} ${unit}`;
}
