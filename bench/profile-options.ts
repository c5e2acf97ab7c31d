/** The command line of the profile. */
import { integerOf, numberOf, readFlags } from './option-values.ts';

/** The command line, read and with its defaults. */
export interface ProfileOptions {
  readonly help: boolean;
  readonly json: boolean;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly connections: number;
  /** Functions shown of each thread. */
  readonly top: number;
  readonly index: boolean;
  /** Undefined: the system's folder for temporary files. */
  readonly folder: string | undefined;
}

export const profileHelpText = `Usage: npm run bench:profile -- [options]

Loads the receiver as \`npm run bench\` does, with V8's profiler in each of its threads, and shows where the
time of a notification goes: microseconds of each thread by kind of work, and its most expensive functions.
The profiler itself costs some; what counts is how the parts compare.

  --seconds S      measured time (8)
  --connections N  keep-alive connections, one request in flight on each (64)
  --top N          functions shown of each thread (12)
  --no-index       without the product index
  --dir FOLDER     where the database is written (the system's temporary folder)
  --json           one JSON object instead of tables
  --help           this text

Exit code: 0 done, 1 failed, 2 wrong usage.

Example:
  npm run bench:profile -- --seconds 5 --top 20
`;

/** Reads the command line, without the program's name. Throws UsageError. */
export function parseProfileOptions(argv: readonly string[]): ProfileOptions {
  const flags = readFlags(argv, {
    seconds: { type: 'string' },
    connections: { type: 'string' },
    top: { type: 'string' },
    'no-index': { type: 'boolean', default: false },
    dir: { type: 'string' },
  });
  return {
    ...{ help: flags.help, json: flags.json, folder: flags.dir, index: !flags['no-index'] },
    warmUpMs: 1_000,
    measureMs: numberOf('seconds', flags.seconds, 8, { min: 0.5, max: 600 }) * 1_000,
    connections: integerOf('connections', flags.connections, 64, { min: 1, max: 10_000 }),
    top: integerOf('top', flags.top, 12, { min: 1, max: 1_000 }),
  };
}
