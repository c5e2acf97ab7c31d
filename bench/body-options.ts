/** The command line of the benchmark of bodies. */
import { integerOf, numberOf, readFlags } from './option-values.ts';

/** The command line, read and with its defaults. */
export interface BodyBenchOptions {
  readonly help: boolean;
  readonly json: boolean;
  readonly check: boolean;
  readonly rounds: number;
  readonly connections: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Stored at full speed, of each kind. */
  readonly notifications: number;
  /** Stored one after the other, of each kind. */
  readonly singles: number;
  readonly speed: boolean;
  /** Undefined: the system's folder for temporary files. */
  readonly folder: string | undefined;
}

export const bodyHelpText = `Usage: npm run bench:bodies -- [options]

Measures what it costs to compress the bodies of the log, and what it saves:
  speed  intake over HTTPS, with bodies kept as they came and compressed, in turn
  disk   bytes of earshot.db for each notification: stored at full speed, stored one at a time, and both
         after \`earshot compact\`; for generated products, and for the real records of ../shared/fixtures
         where these are there

  --rounds N          rounds of the speed; its ratio is the median of theirs (5)
  --seconds S         measured time of one state in one round (8)
  --warm-up-seconds S load before that, not measured (2)
  --connections N     keep-alive connections, one request in flight on each (64)
  --notifications N   of each kind, at full speed (50000)
  --singles N         of each kind, one at a time (5000)
  --no-speed          the disk alone
  --dir FOLDER        where the databases are written (the system's temporary folder)
  --check             exit 1 when a target is missed
  --json              one JSON object instead of tables
  --help              this text

Exit code: 0 done, 1 failed, or (--check) a target is missed; 2 wrong usage.

Example:
  npm run bench:bodies -- --no-speed --notifications 10000
`;

/** Reads the command line, without the program's name. Throws UsageError. */
export function parseBodyOptions(argv: readonly string[]): BodyBenchOptions {
  const flags = readFlags(argv, {
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    'warm-up-seconds': { type: 'string' },
    connections: { type: 'string' },
    notifications: { type: 'string' },
    singles: { type: 'string' },
    'no-speed': { type: 'boolean', default: false },
    dir: { type: 'string' },
  });
  const count = { min: 100, max: 10_000_000 };
  const seconds = { min: 0.1, max: 600 };
  return {
    ...{ help: flags.help, json: flags.json, check: flags.check, folder: flags.dir },
    rounds: integerOf('rounds', flags.rounds, 5, { min: 1, max: 1_000 }),
    connections: integerOf('connections', flags.connections, 64, { min: 1, max: 10_000 }),
    warmUpMs: numberOf('warm-up-seconds', flags['warm-up-seconds'], 2, seconds) * 1_000,
    measureMs: numberOf('seconds', flags.seconds, 8, seconds) * 1_000,
    notifications: integerOf('notifications', flags.notifications, 50_000, count),
    singles: integerOf('singles', flags.singles, 5_000, count),
    speed: !flags['no-speed'],
  };
}
