/** The benchmark's command line. */
import { integerOf, numberOf, readFlags, rowsOf, UsageError } from './option-values.ts';
import { type AckIdForm, ackIdForms } from './request-ids.ts';

/** The command line, read and with its defaults. */
export interface BenchOptions {
  readonly help: boolean;
  readonly json: boolean;
  /** A missed target makes the exit code 1. */
  readonly check: boolean;
  readonly rounds: number;
  readonly ackIdForm: AckIdForm;
  readonly connections: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly probeMs: number;
  /** Measure the three servers against each other. */
  readonly comparison: boolean;
  readonly growth: boolean;
  /** Measure the intake with the product index on against off. */
  readonly index: boolean;
  /** Measure the intake with summaries being made against none. */
  readonly summaries: boolean;
  /** Measure the intake beside sinks against without. */
  readonly sinks: boolean;
  readonly smallRows: number;
  readonly largeRows: number;
  /** Undefined: the real size. */
  readonly prefillBodyBytes: number | undefined;
  /** Undefined: the system's folder for temporary files. */
  readonly folder: string | undefined;
}

export const helpText = `Usage: npm run bench -- [options]

Measures earshot against two baselines in one run, over HTTPS on loopback, with the same certificate
and the same notifications of real size:
  bare         a Hono server that reads the body and stores nothing: the ceiling
  twenty-line  Hono, Basic Auth and one durable SQLite insert per request: what a user would write
Afterwards every notification that was answered with 200 is looked for in the database file.

  --rounds N               rounds; each figure is the median of them (5)
  --seconds S              measured time of one server in one round (8)
  --warm-up-seconds S      load before that, not measured (2)
  --connections N          keep-alive connections, one request in flight on each (64)
  --ack-ids FORM           observed (as recorded, rising with time) or guid (as specified) (observed)
  --growth                 also: speed and memory on a small and on a large database, and the latency
                           of the readiness probe while another process scans the large one
  --growth-rows A,B        rows of the small and the large database (10000,1000000)
  --prefill-body-bytes N   size of the bodies they are filled with (the real one, about 5 kB each)
  --probe-seconds S        time of the probe, idle and again during scans (10)
  --index                  also: intake with the product index on and off in turn, and how many
                           notifications are indexed a second while they come in at full speed
  --summaries              also: intake with every product asked of a model, which answers after a
                           second, and with no summaries in turn
  --sinks                  also: intake without a sink, beside a webhook that never answers, and beside
                           one that takes everything at once, in turn
  --no-comparison          leave the comparison out, with --growth, --index, --summaries or --sinks
  --dir FOLDER             where the databases are written (the system's temporary folder)
  --quick                  one round of 2 s after 1 s of warm-up, 2 s of probe
  --check                  exit 1 when a target is missed
  --json                   one JSON object instead of tables
  --help                   this text

Exit code: 0 done, 1 an answered notification is missing, a request failed, or (--check) a target is
missed; 2 wrong usage.

Examples:
  npm run bench -- --quick
  npm run bench -- --rounds 3 --seconds 5 --json > bench.json
  npm run bench -- --growth --no-comparison --dir /mnt/disk
  npm run bench -- --index --no-comparison
  npm run bench -- --summaries --no-comparison
  npm run bench -- --sinks --no-comparison
  npm run bench -- --growth --growth-rows 1000,50000 --quick
`;

const secondsMax = 600;

/** Reads the command line, without the program's name. Throws UsageError. */
export function parseOptions(argv: readonly string[]): BenchOptions {
  const values = readFlags(argv, {
    quick: { type: 'boolean', default: false },
    growth: { type: 'boolean', default: false },
    index: { type: 'boolean', default: false },
    summaries: { type: 'boolean', default: false },
    sinks: { type: 'boolean', default: false },
    'no-comparison': { type: 'boolean', default: false },
    rounds: { type: 'string' },
    connections: { type: 'string' },
    'ack-ids': { type: 'string', default: 'observed' },
    seconds: { type: 'string' },
    'warm-up-seconds': { type: 'string' },
    'probe-seconds': { type: 'string' },
    'growth-rows': { type: 'string', default: '10000,1000000' },
    'prefill-body-bytes': { type: 'string' },
    dir: { type: 'string' },
  });
  const quick = values.quick;
  const seconds = (flag: string, text: string | undefined, byDefault: number) =>
    numberOf(flag, text, byDefault, { min: 0.1, max: secondsMax }) * 1_000;
  const [smallRows, largeRows] = rowsOf('growth-rows', values['growth-rows']);
  const comparison = !values['no-comparison'];
  const others = values.growth || values.index || values.summaries || values.sinks;
  if (!comparison && !others) throw new UsageError('--no-comparison leaves nothing to do');
  const bodyBytes = values['prefill-body-bytes'];
  return {
    help: values.help,
    json: values.json,
    check: values.check,
    rounds: integerOf('rounds', values.rounds, quick ? 1 : 5, { min: 1, max: 1_000 }),
    connections: integerOf('connections', values.connections, 64, { min: 1, max: 10_000 }),
    ackIdForm: ackIdFormOf(values['ack-ids']),
    warmUpMs: seconds('warm-up-seconds', values['warm-up-seconds'], quick ? 1 : 2),
    measureMs: seconds('seconds', values.seconds, quick ? 2 : 8),
    probeMs: seconds('probe-seconds', values['probe-seconds'], quick ? 2 : 10),
    comparison,
    growth: values.growth,
    index: values.index,
    summaries: values.summaries,
    sinks: values.sinks,
    smallRows,
    largeRows,
    prefillBodyBytes:
      bodyBytes === undefined
        ? undefined
        : integerOf('prefill-body-bytes', bodyBytes, 0, { min: 1, max: 1_048_576 }),
    folder: values.dir,
  };
}

function ackIdFormOf(text: string): AckIdForm {
  const form = ackIdForms.find((known) => known === text);
  if (form === undefined) throw new UsageError(`--ack-ids wants observed or guid, not ${text}`);
  return form;
}
