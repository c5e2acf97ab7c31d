/** The attacked receiver: a separate `earshot start` process with its own folder, and checks of its store and log. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cleanup } from '../../bench/harness.ts';
import { watchMemory } from '../../bench/processes.ts';
import {
  createEndpoint,
  type Endpoint,
  earshotEnvironment,
  earshotProgram,
  startProcess,
} from '../../bench/servers.ts';
import { openStoreReader } from '../helpers/store.ts';
import { basicLogin } from './case.ts';
import type { Address } from './play-case.ts';

export interface TargetOptions {
  cleanup: Cleanup;
  /** Parent of its folder. */
  parentFolder: string;
  /** Plain HTTP, as behind a proxy. */
  isPlain?: boolean;
  /** Environment variables, in addition to the usual ones or instead of them. */
  environment?: NodeJS.ProcessEnv;
  /** Text of its `earshot.config.ts`; none by default. */
  config?: string;
  /** Fills its data folder before the start. */
  fill?: (dataFolder: string) => Promise<void>;
}

export interface Target {
  readonly endpoint: Endpoint;
  /** Valid Authorization value. */
  readonly authorization: string;
  readonly public: Address;
  readonly private: Address;
  readonly processId: number;
  readonly dataFolder: string;
  isRunning(): boolean;
  /** Returns its complete log. */
  log(): string;
  /** Stops it and resolves with its exit code; null when it had to be killed. */
  stop(): Promise<number | null>;
}

const startTimeoutMs = 60_000;

/** Starts a receiver. Rejects with the end of its log when it does not start. */
export async function startTarget(options: TargetOptions): Promise<Target> {
  const { cleanup, isPlain = false, environment } = options;
  const folder = cleanup.temporaryFolder(options.parentFolder);
  const endpoint = await createEndpoint(folder);
  const dataFolder = join(folder, 'data');
  mkdirSync(dataFolder, { mode: 0o700 });
  if (options.config !== undefined)
    writeFileSync(join(folder, 'earshot.config.ts'), options.config);
  await options.fill?.(dataFolder);
  const usual = earshotEnvironment(endpoint, dataFolder, 0);
  const { EARSHOT_TLS_CERT: _cert, EARSHOT_TLS_KEY: _key, ...withoutFiles } = usual;
  const { child, isRunning, log, stop } = startProcess({
    words: earshotProgram('start'),
    ...{ folder, logFile: join(folder, 'log'), cleanup },
    env: { ...(isPlain ? { ...withoutFiles, EARSHOT_TLS: 'off' } : usual), ...environment },
  });
  const ready = () => /"url":"https?:[^"]*:(\d+)".*"consoleUrl":"http:[^"]*:(\d+)"/.exec(log());
  const giveUpMs = performance.now() + startTimeoutMs;
  for (let ports = ready(); ; ports = ready()) {
    if (ports !== null && child.pid !== undefined) {
      const [publicPort = 0, privatePort = 0] = ports.slice(1).map(Number);
      return {
        public: {
          port: publicPort,
          ...(isPlain ? {} : { authorityPem: endpoint.authorityPem }),
        },
        private: { port: privatePort },
        authorization: basicLogin(endpoint.username, endpoint.password),
        ...{ endpoint, processId: child.pid, dataFolder, isRunning, log },
        stop: async () => {
          await stop();
          if (child.exitCode === null) child.kill('SIGKILL');
          return child.exitCode;
        },
      };
    }
    if (!isRunning() || performance.now() > giveUpMs) {
      throw new Error(`earshot did not start; its log ends:\n${log().slice(-2_000)}`);
    }
    await delay(50);
  }
}

export interface Evidence {
  /** Number of valid pushes answered with 200, and of those that are in the log once. */
  readonly answered: number;
  readonly stored: number;
  readonly quarantined: number;
  /** Number of lines in its log. */
  readonly logLines: number;
  readonly loginLines: number;
  readonly harms: readonly string[];
}

/** Maximum number of log lines about failed logins per minute. */
const loginLinesPerMinuteMax = 31;

/**
 * Stops the receiver and checks its store and log. `answered` are AckIds that begin with `valid`; `logFrom` is
 * the length of the log before the attack.
 */
export async function takeEvidence(
  target: Target,
  answered: readonly string[],
  { seconds, logFrom = 0 }: { seconds: number; logFrom?: number },
): Promise<Evidence> {
  const harms: string[] = [];
  const stored = await readStore(target.dataFolder);
  const missing = answered.filter((ackId) => stored.valid.get(ackId) !== 1);
  if (missing.length > 0) {
    harms.push(
      `${missing.length} pushes were answered, but are not in the log once: ${missing[0]}`,
    );
  }
  harms.push(...stored.unknownClients.map((found) => `stored for an unknown client: ${found}`));
  if (!target.isRunning()) harms.push('the receiver has exited');
  const exitCode = await target.stop();
  if (exitCode !== 0) harms.push(`the receiver exited with ${exitCode}`);
  const lines = target.log().slice(logFrom).split('\n').slice(0, -1);
  const bad = lines.filter((line) => !/^\{"level":"(debug|info|warn)"/.test(line));
  harms.push(...bad.slice(0, 20).map((line) => `in its log: ${line.slice(0, 500)}`));
  const loginPattern = /login failed|failed logins/;
  const loginLines = lines.filter((line) => loginPattern.test(line)).length;
  if (loginLines > loginLinesPerMinuteMax * (Math.ceil(seconds / 60) + 2)) {
    harms.push(`${loginLines} lines about failed logins in ${Math.round(seconds)} s`);
  }
  return {
    answered: answered.length,
    stored: answered.length - missing.length,
    quarantined: stored.quarantined,
    logLines: lines.length,
    ...{ loginLines, harms },
  };
}

/** Counts each valid AckId in the log, and returns entries of unknown clients. */
async function readStore(dataFolder: string) {
  const reader = openStoreReader(dataFolder);
  const valid = new Map<string, number>();
  const unknownClients: string[] = [];
  let quarantined = 0;
  try {
    for await (const { ackId } of reader.find({})) {
      if (ackId?.startsWith('valid')) valid.set(ackId, (valid.get(ackId) ?? 0) + 1);
      if (ackId?.startsWith('unknownClient')) unknownClients.push(`notification ${ackId}`);
    }
    for await (const { id } of reader.quarantined({ released: true })) {
      quarantined += 1;
      const { body } = await reader.quarantineEntry(id);
      if (Buffer.from(body).includes('"unknownClient-'))
        unknownClients.push(`body in quarantine ${id}`);
    }
  } finally {
    await reader.close();
  }
  return { valid, unknownClients, quarantined };
}

export interface MemoryUse {
  /** Resident memory in bytes: before the attack, maximum, and at the end. */
  readonly startBytes: number;
  readonly peakBytes: number;
  readonly endBytes: number;
}

const intervalMs = 200;

/** Measures the memory of a process. On systems without /proc every figure is 0. */
export function watchUse(processId: number): { stop(): MemoryUse } {
  const watched = watchMemory(processId, intervalMs);
  return {
    stop: () => {
      const resident = watched.stop().map(({ residentBytes }) => residentBytes);
      const [startBytes, endBytes] = [resident[0] ?? 0, resident.at(-1) ?? 0];
      return { startBytes, peakBytes: Math.max(0, ...resident), endBytes };
    },
  };
}
