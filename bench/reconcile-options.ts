/** The command line of the benchmark of reconciling a long outage. */
import { integerOf, numberOf, readFlags } from './option-values.ts';

/** The command line, read and with its defaults. */
export interface ReconcileBenchOptions {
  readonly help: boolean;
  readonly json: boolean;
  /** A missed target makes the exit code 1. */
  readonly check: boolean;
  /** How long nobody was there, and how much was published in a day meanwhile. */
  readonly days: number;
  readonly productsPerDay: number;
  /** One run for each: what earshot is allowed to ask in a minute. */
  readonly requestsPerMinute: readonly number[];
  /** Undefined: the system's folder for temporary files. */
  readonly folder: string | undefined;
}

const ratesDefault = '60,6000';

export const reconcileHelpText = `Usage: npm run bench:reconcile -- [options]

Starts the sandbox with a past that nobody was told of, registers a subscription to all of it, and lets
\`earshot reconcile\` fetch it, each run into a data directory of its own: at the rate that earshot keeps
to unless told otherwise, and at one that never makes it wait, for the time of its own work.

  --days N                  days of the past (10)
  --per-day N               products published in each of them (32000)
  --requests-per-minute A,B one run at each rate (${ratesDefault})
  --dir FOLDER              where the data is written (the system's temporary folder)
  --quick                   1 day of 4000 products unless told otherwise
  --check                   exit 1 when a target is missed
  --json                    one JSON object instead of tables
  --help                    this text

Exit code: 0 done, 1 failed or (--check) a target is missed, 2 wrong usage.

Examples:
  npm run bench:reconcile                          a quarter of an hour
  npm run bench:reconcile -- --days 1 --requests-per-minute 6000
`;

/** Reads the command line, without the program's name. Throws UsageError. */
export function parseReconcileOptions(argv: readonly string[]): ReconcileBenchOptions {
  const flags = readFlags(argv, {
    quick: { type: 'boolean', default: false },
    days: { type: 'string' },
    'per-day': { type: 'string' },
    'requests-per-minute': { type: 'string' },
    dir: { type: 'string' },
  });
  const rates = (flags['requests-per-minute'] ?? ratesDefault).split(',');
  return {
    ...{ help: flags.help, json: flags.json, check: flags.check, folder: flags.dir },
    days: numberOf('days', flags.days, flags.quick ? 1 : 10, { min: 0.1, max: 300 }),
    productsPerDay: integerOf('per-day', flags['per-day'], flags.quick ? 4_000 : 32_000, {
      min: 1,
      max: 1_000_000,
    }),
    requestsPerMinute: rates.map((rate) =>
      integerOf('requests-per-minute', rate, 0, { min: 1, max: 1_000_000 }),
    ),
  };
}
