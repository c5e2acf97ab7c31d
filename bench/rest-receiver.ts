/** A receiver with every background job, and the services that it uses, for the benchmark at rest. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startSandbox } from '../src/sandbox/sandbox.ts';
import type { Cleanup } from './harness.ts';
import { freePort, readCpuMs } from './processes.ts';
import {
  createEndpoint,
  type Endpoint,
  earshotEnvironment,
  earshotProgram,
  getStatus,
  startHook,
  startProcess,
} from './servers.ts';

const account = { username: 'sandbox', password: 'sandbox' };

/** Catalogue, identity provider, inference service and web service for a sink. They are idle. */
export interface OutsideServices {
  readonly endpoint: Endpoint;
  /** Environment of a receiver that uses them all. The receiver runs in the data folder. */
  environment(dataFolder: string, port: number): NodeJS.ProcessEnv;
  /** Writes `earshot.config.ts` with a subscription, a sink and summaries. */
  writeConfig(dataFolder: string): void;
  close(): Promise<void>;
}

/** Starts the services; by default the catalogue publishes nothing. Files of the certificate are in `folder`. */
export async function startOutsideServices(
  folder: string,
  cleanup: Cleanup,
  publishing: Partial<Parameters<typeof startSandbox>[0]> = { count: 0 },
): Promise<OutsideServices> {
  const endpoint = await createEndpoint(folder);
  const authorityFile = join(folder, 'authority.pem');
  writeFileSync(authorityFile, endpoint.authorityPem);
  const sandbox = await startSandbox({
    ...{ account, trustedCaPems: [endpoint.authorityPem], now: Date.now, ...publishing },
  });
  const webhook = `http://127.0.0.1:${await startHook(cleanup)}/accept`;
  return {
    endpoint,
    environment: (dataFolder, port) => ({
      ...earshotEnvironment(endpoint, dataFolder, port),
      EARSHOT_PUBLIC_URL: `https://localhost:${port}`,
      EARSHOT_PROBE_CA: authorityFile,
      EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
      EARSHOT_TOKEN_URL: sandbox.tokenUrl,
      EARSHOT_ACCOUNT_USERNAME: account.username,
      EARSHOT_ACCOUNT_PASSWORD: account.password,
      EARSHOT_INFERENCE_URL: sandbox.inferenceUrl,
      EARSHOT_INFERENCE_API_KEY: 'sandbox-key',
      EARSHOT_INFERENCE_MODEL: 'openai/gpt-oss-120b',
      EARSHOT_SUMMARY: 'each',
      EARSHOT_KEEP: '3650d',
    }),
    writeConfig: (dataFolder) => {
      mkdirSync(dataFolder, { recursive: true });
      const subscriptions = { bench: { events: ['created'] } };
      const text = JSON.stringify({ subscriptions, sinks: { hook: { webhook } } });
      writeFileSync(join(dataFolder, 'earshot.config.ts'), `export default ${text};\n`);
    },
    close: async () => {
      await sandbox.close();
    },
  };
}

/** A receiver at rest. */
export interface RestingReceiver {
  readonly processId: number;
  readonly dataFolder: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Time from the start of the process to the answer of the first stored push, ms. */
  readonly firstPushMs: number;
  /** Rejects if the receiver does not exit cleanly. */
  stop(): Promise<void>;
}

const firstPushTimeoutMs = 60_000;
/** Interval between attempts to send the first push. */
const attemptMs = 5;

/** Starts a receiver in a data folder and sends one push, or a probe, as soon as it answers. Rejects if it exits. */
export async function startResting(
  services: OutsideServices,
  options: { dataFolder: string; cleanup: Cleanup; push: Buffer | null },
): Promise<RestingReceiver> {
  const { dataFolder, cleanup, push } = options;
  services.writeConfig(dataFolder);
  const port = await freePort();
  const environment = services.environment(dataFolder, port);
  const startMs = performance.now();
  const { child, isRunning, log, stop } = startProcess({
    words: earshotProgram('start'),
    folder: dataFolder,
    env: environment,
    logFile: join(dataFolder, 'earshot.log'),
    cleanup,
  });
  const fail = (problem: string) =>
    new Error(`earshot ${problem}; end of its log:\n${log().slice(-2_000)}`);
  const isAnswered = async () => {
    const { endpoint } = services;
    const answer =
      push === null ? getStatus(endpoint, port, '/notifications') : post(endpoint, port, push);
    return (await answer) === 200;
  };
  while (!(await isAnswered())) {
    if (!isRunning()) throw fail('exited while starting');
    if (performance.now() - startMs > firstPushTimeoutMs) throw fail('stored no push');
    await delay(attemptMs);
  }
  const firstPushMs = performance.now() - startMs;
  if (child.pid === undefined) throw fail('has no process id');
  return {
    processId: child.pid,
    dataFolder,
    environment,
    firstPushMs,
    stop: async () => {
      await stop();
      if (child.exitCode !== 0) throw fail(`exited with ${child.exitCode}`);
    },
  };
}

const restTimeoutMs = 60_000;
/** Processor time of a receiver at rest within a second. */
const restingCpuMs = 50;

/** Resolves when a receiver uses little processor time; rejects after a minute. */
export async function untilAtRest({ processId }: RestingReceiver): Promise<void> {
  const beganMs = performance.now();
  for (let usedMs = readCpuMs(processId); ; ) {
    await delay(1_000);
    const nowMs = readCpuMs(processId);
    if (nowMs === undefined || usedMs === undefined || nowMs - usedMs <= restingCpuMs) return;
    if (performance.now() - beganMs > restTimeoutMs) throw new Error('the receiver does not rest');
    usedMs = nowMs;
  }
}

/** Sends one push on a new connection. Returns the status; undefined without an answer. */
function post(
  { authorityPem: ca, username, password }: Endpoint,
  port: number,
  body: Buffer,
): Promise<number | undefined> {
  return new Promise((resolve) => {
    const where = { host: '127.0.0.1', servername: 'localhost', port, ca, agent: false as const };
    const outgoing = request({
      ...where,
      method: 'POST',
      path: '/notifications/bench',
      auth: `${username}:${password}`,
      headers: { 'content-type': 'application/json', 'content-length': body.length },
    });
    outgoing.on('response', (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    });
    outgoing.on('error', () => resolve(undefined));
    outgoing.on('close', () => resolve(undefined));
    outgoing.end(body);
  });
}

/** Runs a command of earshot until its end; rejects with its output if it fails. */
export async function runCommand(
  words: readonly string[],
  { environment, dataFolder }: { environment: NodeJS.ProcessEnv; dataFolder: string },
): Promise<void> {
  const child = spawn(process.execPath, earshotProgram(...words), {
    ...{ cwd: dataFolder, env: environment, stdio: ['ignore', 'ignore', 'pipe'] },
  });
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`earshot ${words.join(' ')} exited with ${code}: ${output}`);
}
