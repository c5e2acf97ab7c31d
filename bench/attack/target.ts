/** The program that is attacked: `earshot start` as a process of its own, on loopback, in a folder of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cleanup } from '../cleanup.ts';
import { createEndpoint, type Endpoint } from '../endpoint.ts';
import { earshotEnvironment, projectFolder } from '../servers.ts';
import type { Address } from './wire.ts';

export interface TargetOptions {
  cleanup: Cleanup;
  /** Where its folder is made. */
  parentFolder: string;
  /** Plain HTTP, as behind a proxy. */
  isPlain?: boolean;
  /** Variables beside the usual ones, or in their place. */
  environment?: NodeJS.ProcessEnv;
}

export interface Target {
  readonly endpoint: Endpoint;
  readonly public: Address;
  readonly private: Address;
  readonly processId: number;
  readonly dataFolder: string;
  isRunning(): boolean;
  /** All that it has written to its log. */
  log(): string;
  /** Asks it to stop and resolves with its exit code; null when it had to be killed. */
  stop(): Promise<number | null>;
}

const startTimeoutMs = 60_000;
const stopTimeoutMs = 60_000;

/** Rejects, with the end of its log, when it does not start. */
export async function startTarget(options: TargetOptions): Promise<Target> {
  const { cleanup, isPlain = false } = options;
  const folder = cleanup.temporaryFolder(options.parentFolder);
  const endpoint = await createEndpoint(folder);
  const dataFolder = join(folder, 'data');
  mkdirSync(dataFolder);
  const logFile = join(folder, 'log');
  const written = openSync(logFile, 'a');
  const program = join(projectFolder(), 'scripts/earshot.js');
  const child = spawn(process.execPath, ['--max-semi-space-size=16', program, 'start'], {
    cwd: folder,
    env: environmentOf(endpoint, dataFolder, options),
    stdio: ['ignore', 'ignore', written],
  });
  closeSync(written);
  cleanup.ownProcess(child);
  const ended = once(child, 'exit');
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  const log = () => readFileSync(logFile, 'utf8');
  const ready = () => /"url":"https?:[^"]*:(\d+)".*"consoleUrl":"http:[^"]*:(\d+)"/.exec(log());
  const giveUpMs = performance.now() + startTimeoutMs;
  for (let ports = ready(); ; ports = ready()) {
    if (ports !== null && child.pid !== undefined) {
      const [publicPort, privatePort] = ports.slice(1).map(Number);
      const secure = isPlain ? {} : { authorityPem: endpoint.authorityPem };
      const stop = () => stopped(child, ended);
      return {
        public: { port: publicPort ?? 0, ...secure },
        private: { port: privatePort ?? 0 },
        ...{ endpoint, processId: child.pid, dataFolder, isRunning, log, stop },
      };
    }
    if (!isRunning() || performance.now() > giveUpMs) {
      throw new Error(`earshot did not start; its log ends:\n${log().slice(-2_000)}`);
    }
    await delay(50);
  }
}

function environmentOf(
  endpoint: Endpoint,
  dataFolder: string,
  { isPlain = false, environment = {} }: TargetOptions,
): NodeJS.ProcessEnv {
  const usual = earshotEnvironment(endpoint, dataFolder, 0);
  const { EARSHOT_TLS_CERT: _cert, EARSHOT_TLS_KEY: _key, ...withoutFiles } = usual;
  return { ...(isPlain ? { ...withoutFiles, EARSHOT_TLS: 'off' } : usual), ...environment };
}

async function stopped(
  child: ReturnType<typeof spawn>,
  ended: Promise<unknown[]>,
): Promise<number | null> {
  child.kill('SIGTERM');
  await Promise.race([ended, delay(stopTimeoutMs, undefined, { ref: false })]);
  if (child.exitCode === null) child.kill('SIGKILL');
  return child.exitCode;
}
