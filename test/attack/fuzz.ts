/** `npm run attack -- fuzz`: many requests to each listener, and a check of the store and the log. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { alignTable, figure, megabytes, quantile } from '../../bench/figures.ts';
import {
  type BenchContext,
  type Benchmark,
  dirOption,
  integer,
  optional,
  word,
} from '../../bench/harness.ts';
import { checkPrivateAnswer, checkPublicAnswer } from './answer-checks.ts';
import { basicLogin } from './case.ts';
import { guardedPrivateMakers, openPrivateMakers } from './cases/private.ts';
import { drawFrom, type FuzzRun, type Harm, publicMakers, runFuzz } from './fuzz-run.ts';
import { startSteadyPushes } from './steady-pushes.ts';
import {
  type Evidence,
  type MemoryUse,
  startTarget,
  type Target,
  takeEvidence,
  watchUse,
} from './target.ts';

const listenerNames = ['https', 'plain', 'private', 'private-password'] as const;

const many = { min: 0, max: 100_000_000 };

const options = {
  requests: integer('N', 'requests to the public listener, a fifth of them over plain HTTP', {
    ...{ default: 100_000, ...many },
  }),
  private: integer('N', 'requests to the private listener, half of them with a password', {
    ...{ default: 20_000, ...many },
  }),
  seed: optional(
    integer('N', 'the same seed sends the same bytes (default: random)', {
      ...{ min: 0, max: 2 ** 32 - 1 },
    }),
  ),
  connections: integer('N', 'parallel connections', { default: 24, min: 1, max: 200 }),
  only: optional(integer('N', 'runs only case N; requires --seed and --listener', many)),
  listener: word('NAME', listenerNames.join(', '), listenerNames),
  dir: dirOption,
};

export const fuzz: Benchmark<typeof options> = {
  command: 'npm run attack -- fuzz',
  about: `Sends malformed, hostile and unusual requests to its own \`earshot start\` on loopback, with valid
pushes among them, over HTTPS, plain HTTP and to the private listener; then checks its store and log.`,
  options,
  closing: `Exit code: 0 no harm, 1 harm, 2 wrong usage.

Examples:
  npm run attack -- fuzz                                         about ten minutes
  npm run attack -- fuzz --requests 5000 --private 1000 --seed 7
  npm run attack -- fuzz --seed 7 --listener https --only 1234   repeats one case`,
  refuse: ({ only, seed, listener }) =>
    only !== undefined && (seed === undefined || listener === undefined)
      ? '--only requires --seed and --listener: the number of a case depends on them'
      : null,
  async measure(chosen, { cleanup, progress, folder }) {
    const { requests, private: privateRequests, connections, only } = chosen;
    const seed = chosen.seed ?? randomBytes(4).readUInt32LE();
    const plain = Math.floor(requests / 5);
    const guarded = Math.floor(privateRequests / 2);
    const counts = {
      ...{ https: requests - plain, plain },
      ...{ private: privateRequests - guarded, 'private-password': guarded },
    };
    const listeners: FuzzedListener[] = [];
    for (const listener of listenerNames) {
      const cases =
        only === undefined
          ? { from: 0, until: counts[listener] }
          : { from: only, until: only + Number(chosen.listener === listener) };
      if (cases.from === cases.until) continue;
      const onProgress = (played: number) =>
        played % 100 === 0 && progress.show(`${listener}: ${played} of ${counts[listener]}`);
      const context = { cleanup, folder, seed, connections, onProgress };
      listeners.push(await fuzzListener(listener, cases, context));
    }
    const command = `npm run attack -- fuzz --requests ${requests} --private ${privateRequests} --seed ${seed}`;
    const harms = listeners.flatMap((one) => one.harms.map((harm) => harmText(one.listener, harm)));
    return {
      report: { command, listeners },
      text: [
        renderListeners(listeners),
        ...listeners.map(answersOf),
        harms.length === 0 ? 'No harm.' : `${harms.length} harms:`,
        ...harms,
        `Repeat: ${command}`,
      ],
      hasFailed: harms.length > 0,
    };
  },
};

function harmText(listener: ListenerName, harm: Harm | string): string {
  if (typeof harm === 'string') return `${listener}: ${harm}`;
  const { index, name, what, sent, answered } = harm;
  return `${listener}, case ${index} (${name}): ${what}\n  ${sent}\n  ${answered}`;
}

function renderListeners(listeners: readonly FuzzedListener[]): string {
  const header = [
    ...['listener', 'requests', 'seconds', 'valid pushes', 'stored', 'p50 ms', 'p99 ms'],
    ...['quarantined', 'MB at start', 'MB at most', 'log lines', 'harms'],
  ];
  return alignTable([header, ...listeners.map(row)]);
}

function row(one: FuzzedListener): string[] {
  const { listener, requests, seconds, pushMs, evidence, memory, harms } = one;
  return [
    listener,
    ...[requests, seconds, pushMs.length, evidence.stored].map((value) => figure(value)),
    ...[figure(quantile(pushMs, 0.5), 1), figure(quantile(pushMs, 0.99), 1)],
    ...[figure(evidence.quarantined), megabytes(memory.startBytes), megabytes(memory.peakBytes)],
    ...[figure(evidence.logLines), figure(harms.length)],
  ];
}

/** Renders the numbers of answers by family and status. */
function answersOf({ listener, answers }: FuzzedListener): string {
  const statuses = [...new Set(Object.values(answers).flatMap((own) => Object.keys(own)))].sort();
  const families = Object.entries(answers).sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = families.map(([family, own]) => [
    family,
    ...statuses.map((status) => figure(own[status] ?? null)),
  ]);
  return alignTable([[`answers (${listener})`, ...statuses], ...rows]);
}

type ListenerName = (typeof listenerNames)[number];

interface FuzzedListener {
  readonly listener: ListenerName;
  readonly requests: number;
  readonly seconds: number;
  readonly answers: FuzzRun['answers'];
  readonly pushMs: readonly number[];
  readonly memory: MemoryUse;
  readonly evidence: Evidence;
  /** Failed cases, and problems found afterwards. */
  readonly harms: readonly (Harm | string)[];
}

interface FuzzContext extends Pick<BenchContext, 'cleanup' | 'folder'> {
  readonly seed: number;
  readonly connections: number;
  readonly onProgress: (played: number) => void;
}

/** Maximum memory. Measured: 400 MB, regardless of the number of requests; more indicates a leak. */
const peakBytesMax = 700e6;
const consolePassword = 'a password of the fuzzer';

const steadyPerSecond = 20;
const indexTimeoutMs = 30_000;

async function fuzzListener(
  listener: ListenerName,
  cases: { from: number; until: number },
  { cleanup, folder, seed, connections, onProgress }: FuzzContext,
): Promise<FuzzedListener> {
  const target = await startTarget({
    ...{ cleanup, parentFolder: folder, isPlain: listener === 'plain' },
    environment:
      listener === 'private-password' ? { EARSHOT_CONSOLE_PASSWORD: consolePassword } : {},
  });
  const isPublic = listener === 'https' || listener === 'plain';
  if (!isPublic) await untilIndexed(target);
  const logFrom = target.log().length;
  const memory = watchUse(target.processId);
  const startMs = performance.now();
  const run = { seed, connections, onProgress, ...cases };
  const fuzzed = isPublic
    ? await runFuzz({
        ...{
          ...run,
          address: target.public,
          authorization: target.authorization,
          check: checkPublicAnswer,
        },
        ...{ draw: drawFrom(publicMakers), withPushes: true },
      })
    : await fuzzPrivate(target, run, listener === 'private-password');
  const seconds = (performance.now() - startMs) / 1_000;
  const memoryUse = memory.stop();
  const evidence = await takeEvidence(target, fuzzed.acknowledged, { seconds, logFrom });
  const { answers, pushMs } = fuzzed;
  const { peakBytes } = memoryUse;
  const grown = `memory: ${Math.round(peakBytes / 1e6)} MB, more than ${peakBytesMax / 1e6}`;
  return {
    ...{ listener, requests: cases.until - cases.from, seconds, answers, pushMs },
    ...{ memory: memoryUse, evidence },
    harms: [...fuzzed.harms, ...evidence.harms, ...(peakBytes > peakBytesMax ? [grown] : [])],
  };
}

type Run = Pick<FuzzContext, 'seed' | 'connections' | 'onProgress'> & {
  from: number;
  until: number;
};

/** Attacks the private listener while valid pushes go to the public one, which must not be affected. */
async function fuzzPrivate(
  target: Target,
  run: Run,
  hasPassword: boolean,
): Promise<Omit<FuzzRun, 'harms'> & { harms: readonly (Harm | string)[] }> {
  const pushes = startSteadyPushes(target, { perSecond: steadyPerSecond, kind: 'kept' });
  const login = basicLogin('earshot', consolePassword);
  const makers = hasPassword
    ? guardedPrivateMakers([`Authorization: ${login}`, `Cookie: ${await cookieOf(target)}`])
    : openPrivateMakers;
  const fuzzed = await runFuzz({
    ...run,
    ...{ address: target.private, authorization: login, check: checkPrivateAnswer },
    ...{ draw: drawFrom(makers), withPushes: false },
  });
  const { acknowledged, failures, tookMs: pushMs } = await pushes.stop();
  const harms = [...fuzzed.harms, ...failures.map((failure) => `a push meanwhile: ${failure}`)];
  return { ...fuzzed, harms, acknowledged, pushMs };
}

/** Logs in, and returns the cookie: failed logins of the attack would otherwise block the valid one. */
async function cookieOf({ private: { port } }: Target): Promise<string> {
  const headers = { authorization: basicLogin('earshot', consolePassword) };
  const answer = await fetch(`http://127.0.0.1:${port}/api`, { headers });
  const [cookie = ''] = answer.headers.getSetCookie();
  return cookie.replace(/;.*/, '');
}

/** Waits for the product index; without it, every query is answered with 503 and logged as an error. */
async function untilIndexed({ private: { port } }: Target): Promise<void> {
  const authorization = basicLogin('earshot', consolePassword);
  const url = `http://127.0.0.1:${port}/odata/v1/Products?$top=1`;
  const giveUpMs = performance.now() + indexTimeoutMs;
  while (!(await fetch(url, { headers: { authorization } })).ok) {
    if (performance.now() > giveUpMs) throw new Error('there is no product index');
    await delay(200);
  }
}
