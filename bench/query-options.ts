/** The command line of the benchmark of queries. */
import { integerOf, readFlags, rowsOf, UsageError } from './option-values.ts';

/** The command line, read and with its defaults. */
export interface QueryBenchOptions {
  readonly help: boolean;
  readonly json: boolean;
  /** A missed target makes the exit code 1. */
  readonly check: boolean;
  readonly smallRows: number;
  readonly largeRows: number;
  /** Different values asked for, of each kind of query. */
  readonly values: number;
  /** Undefined: the system's folder for temporary files. */
  readonly folder: string | undefined;
  /** What was generated stays, and a later run uses it. */
  readonly keep: boolean;
}

export const queryHelpText = `Usage: npm run bench:query -- [options]

Generates products at the catalogue's rate of 32,000 a day, indexes them, and measures queries on a
small and on a large index: the first page of 50 and the count, on the index itself and over HTTP.
Each kind of query is asked with many values, after a warm-up with others.

  --rows A,B       products of the small and the large index (10000,1000000)
  --values N       values of each kind of query (50)
  --dir FOLDER     where the data is written, 9 GB for a million (the system's temporary folder)
  --keep           leave the data there, in products-A and products-B, and use what is there already
  --quick          10 values, 2000 and 20000 products unless --rows says otherwise
  --check          exit 1 when a target is missed or a query scans the table
  --json           one JSON object instead of tables
  --help           this text

Exit code: 0 done, 1 failed or (--check) a target is missed, 2 wrong usage.

Examples:
  npm run bench:query -- --quick
  npm run bench:query -- --dir /mnt/disk --keep --json > queries.json
`;

/** Reads the command line, without the program's name. Throws UsageError. */
export function parseQueryOptions(argv: readonly string[]): QueryBenchOptions {
  const flags = readFlags(argv, {
    quick: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    rows: { type: 'string' },
    values: { type: 'string' },
    dir: { type: 'string' },
  });
  const [smallRows, largeRows] = rowsOf(
    'rows',
    flags.rows ?? (flags.quick ? '2000,20000' : '10000,1000000'),
  );
  if (flags.keep && flags.dir === undefined) {
    throw new UsageError('--keep wants --dir with the folder where the data shall stay');
  }
  return {
    ...{ help: flags.help, json: flags.json, check: flags.check, smallRows, largeRows },
    values: integerOf('values', flags.values, flags.quick ? 10 : 50, { min: 1, max: 10_000 }),
    folder: flags.dir,
    keep: flags.keep,
  };
}
