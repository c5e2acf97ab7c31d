/** The command line of the simulated month. */
import { integerOf, readFlags } from './option-values.ts';

/** The command line, read and with its defaults. */
export interface MonthBenchOptions {
  readonly help: boolean;
  readonly json: boolean;
  /** What is not as it should be makes the exit code 1. */
  readonly check: boolean;
  readonly days: number;
  readonly productsPerDay: number;
  readonly roundHours: number;
  readonly seed: number;
  /** Undefined: the system's folder for temporary files. */
  readonly folder: string | undefined;
}

export const monthHelpText = `Usage: npm run bench:month -- [options]

Lets a month pass in which the receiver is down for minutes, hours and days, 5 % of the pushes are lost, a
subscription is paused by a person, another by the catalogue, and one is replaced; what earshot compares and
looks up meanwhile is then held against the truth, event by event.

  --days N         days of the month, 8 at least (30)
  --per-day N      products published in each of them (4000)
  --round-hours N  simulated hours between two rounds of comparing (4)
  --seed N         of the products, the faults and the moments (1)
  --dir FOLDER     where the data is written (the system's temporary folder)
  --check          exit 1 when the log differs from the truth
  --json           one JSON object instead of a table
  --help           this text

Exit code: 0 done, 1 failed or (--check) something differs, 2 wrong usage.

Examples:
  npm run bench:month                          ten minutes or so
  npm run bench:month -- --per-day 32000       the real rate: some hours, and many GB of memory
`;

/** Reads the command line, without the program's name. Throws UsageError. */
export function parseMonthOptions(argv: readonly string[]): MonthBenchOptions {
  const flags = readFlags(argv, {
    days: { type: 'string' },
    'per-day': { type: 'string' },
    'round-hours': { type: 'string' },
    seed: { type: 'string' },
    dir: { type: 'string' },
  });
  const { help, json, check, dir: folder } = flags;
  const range = (min: number, max: number) => ({ min, max });
  return {
    ...{ help, json, check, folder },
    days: integerOf('days', flags.days, 30, range(8, 60)),
    productsPerDay: integerOf('per-day', flags['per-day'], 4_000, range(21, 100_000)),
    roundHours: integerOf('round-hours', flags['round-hours'], 4, range(1, 24)),
    seed: integerOf('seed', flags.seed, 1, range(0, 2 ** 31 - 1)),
  };
}
