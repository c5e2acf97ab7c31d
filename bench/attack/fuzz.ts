/** The fuzzer from command line to verdict: many requests to each listener, and what was left behind. */
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import type { Cleanup } from '../cleanup.ts';
import { integerOf, readFlags, UsageError } from '../option-values.ts';
import type { Progress } from '../progress.ts';
import type { Measurement } from '../run-measurement.ts';
import { type FuzzedListener, fuzzListener, listenerNames } from './fuzz-listener.ts';
import { renderFuzz } from './fuzz-report.ts';

export interface FuzzOptions {
  readonly help: boolean;
  readonly json: boolean;
  readonly requests: number;
  readonly privateRequests: number;
  readonly seed: number;
  readonly connections: number;
  /** One case alone, by its number, against one listener. */
  readonly only: { readonly index: number; readonly listener: string } | null;
  readonly folder: string;
}

export interface FuzzReport {
  readonly command: string;
  readonly listeners: readonly FuzzedListener[];
}

const helpText = `Usage: npm run attack -- fuzz [options]

Sends requests that are broken, hostile or odd to an \`earshot start\` of its own on loopback, with valid
pushes among them, over HTTPS, plain HTTP and to the private listener; then looks at its store and log.

  --requests N     to the public listener, a fifth of them over plain HTTP (100000)
  --private N      to the private listener, half of them with a password (20000)
  --seed N         the same seed sends the same bytes (a new one each time)
  --connections N  at a time (24)
  --only N         plays case N alone; wants --seed and --listener
  --listener NAME  ${listenerNames.join(', ')}
  --dir FOLDER     where the data is written (the system's temporary folder)
  --json           one JSON object instead of tables
  --help           this text

Exit code: 0 nothing was harmed, 1 something was, 2 wrong usage.

Examples:
  npm run attack -- fuzz                                         some ten minutes
  npm run attack -- fuzz --requests 5000 --private 1000 --seed 7
  npm run attack -- fuzz --seed 7 --listener https --only 1234   one case again
`;

export const fuzzMeasurement: Measurement<FuzzOptions, FuzzReport> = {
  parse: parseFuzzOptions,
  helpText,
  measure: fuzzAll,
  render: renderFuzz,
  hasFailed: ({ listeners }) => listeners.some(({ harms }) => harms.length > 0),
};

function parseFuzzOptions(argv: readonly string[]): FuzzOptions {
  const flags = readFlags(argv, {
    requests: { type: 'string' },
    private: { type: 'string' },
    seed: { type: 'string' },
    connections: { type: 'string' },
    only: { type: 'string' },
    listener: { type: 'string' },
    dir: { type: 'string' },
  });
  const { help, json, only, listener, dir: folder = tmpdir() } = flags;
  const range = (min: number, max: number) => ({ min, max });
  const many = range(0, 100_000_000);
  if (only !== undefined && (flags.seed === undefined || listener === undefined)) {
    throw new UsageError(
      '--only wants --seed and --listener: a case has its number in one run only',
    );
  }
  if (listener !== undefined && !listenerNames.some((name) => name === listener)) {
    throw new UsageError(`--listener wants one of ${listenerNames.join(', ')}, not ${listener}`);
  }
  const index = integerOf('only', only, 0, many);
  return {
    ...{ help, json, folder },
    requests: integerOf('requests', flags.requests, 100_000, many),
    privateRequests: integerOf('private', flags.private, 20_000, many),
    seed: integerOf('seed', flags.seed, randomBytes(4).readUInt32LE(), range(0, 2 ** 32 - 1)),
    connections: integerOf('connections', flags.connections, 24, range(1, 200)),
    only: only === undefined || listener === undefined ? null : { index, listener },
  };
}

async function fuzzAll(
  options: FuzzOptions,
  _argv: string[],
  cleanup: Cleanup,
  progress: Progress,
): Promise<FuzzReport> {
  const { requests, privateRequests, seed, connections, folder, only } = options;
  const plain = Math.floor(requests / 5);
  const guarded = Math.floor(privateRequests / 2);
  const counts = {
    ...{ https: requests - plain, plain },
    ...{ private: privateRequests - guarded, 'private-password': guarded },
  };
  const listeners: FuzzedListener[] = [];
  for (const listener of listenerNames) {
    const cases =
      only === null
        ? { from: 0, until: counts[listener] }
        : { from: only.index, until: only.index + Number(only.listener === listener) };
    if (cases.from === cases.until) continue;
    const onProgress = (played: number) =>
      played % 100 === 0 && progress.show(`${listener}: ${played} of ${counts[listener]}`);
    const world = { cleanup, folder, seed, connections, onProgress };
    listeners.push(await fuzzListener(listener, cases, world));
  }
  const command = `npm run attack -- fuzz --requests ${requests} --private ${privateRequests} --seed ${seed}`;
  return { command, listeners };
}
