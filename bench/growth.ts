/** Measures the same load on a small and on a large database, and the readiness probe on the large one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { Agent } from 'node:https';
import { createHistogram } from 'node:perf_hooks';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { alignTable, figure, inMegabytes, median, target } from './figures.ts';
import { type MeasuredPart, peakMegabytes } from './intake-parts.ts';
import { flushToDisk, type LogEntry, writeLog } from './log-writer.ts';
import {
  type BenchSetting,
  measureServer,
  type Round,
  renderRounds,
  runsOf,
  speedRatio,
} from './measure.ts';
import {
  ackIdOf,
  createBodyTemplates,
  meanBodyBytes,
  productIdOf,
  writeIds,
} from './notifications.ts';
import { readCpuMs } from './processes.ts';
import {
  databaseFile,
  earshotEnvironment,
  getStatus,
  projectFolder,
  type RunningServer,
  startServer,
} from './servers.ts';

/** Options of the growth measurement. */
export interface GrowthOptions {
  readonly smallRows: number;
  readonly largeRows: number;
  /** Size of the prefilled bodies; undefined: real size. */
  readonly bodyBytes: number | undefined;
  /** Duration of the probe in each of its two states. */
  readonly probeMs: number;
}

/** Latency of the probe's requests. */
interface ProbeFigures {
  readonly requests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Requests with an answer other than 200, or none. */
  readonly failures: number;
}

/** The probe in its two states, one after the other. */
interface ProbeRound {
  readonly idle: ProbeFigures;
  readonly scanning: ProbeFigures;
  /** Completed scans of the log during the probe. */
  readonly scans: number;
}

const idleIntervalMs = 500;
const idleCores = 0.05;
const idleTimeoutMs = 600_000;

/** Prefills both databases and alternates between them; then runs the probe for the same number of rounds. */
export async function measureGrowth(
  setting: BenchSetting,
  options: GrowthOptions,
): Promise<MeasuredPart> {
  const { cleanup, progress } = setting;
  const { smallRows, largeRows } = options;
  const smallMaster = await createPrefilled(setting, options, smallRows);
  const large = await createPrefilled(setting, options, largeRows);
  const rounds: Round<'small' | 'large'>[] = [];
  const measure = (folder: string) =>
    measureServer(setting, 'earshot', folder, { prepare: waitUntilIdle });
  for (let round = 1; round <= setting.rounds; round += 1) {
    const where = `growth, round ${round} of ${setting.rounds}`;
    progress.show(`${where}: ${smallRows} rows`);
    // Copied for each round, because the load adds many times the initial rows.
    const copy = cleanup.temporaryFolder(setting.folder);
    cpSync(smallMaster, copy, { recursive: true });
    flushToDisk(databaseFile(copy));
    const small = await measure(copy);
    cleanup.removeFolder(copy);
    progress.show(`${where}: ${largeRows} rows`);
    rounds.push({ small, large: await measure(large) });
  }
  const probes = await runProbes(setting, options, large);
  cleanup.removeFolder(smallMaster);
  cleanup.removeFolder(large);
  const bodyBytes = options.bodyBytes ?? meanBodyBytes(setting.ackIdForm);
  const ratio = speedRatio(rounds, 'large', 'small');
  const probeP99Ratio = median(probes.map(({ idle, scanning }) => scanning.p99Ms / idle.p99Ms));
  const peak = inMegabytes(median(rounds.map((round) => round.large.peakResidentBytes)));
  const failures = probes.flatMap(({ idle, scanning }) => [idle.failures, scanning.failures]);
  const failed = failures.reduce((sum, count) => sum + count, 0);
  const rows = { small: smallRows, large: largeRows };
  const text = [
    `earshot on databases prefilled with bodies of ${figure(bodyBytes)} bytes`,
    renderRounds('database', ['small', 'large'], rounds, (size) => `${rows[size]} rows`),
    '',
    `requests/s, large / small: ${figure(ratio, 2)}`,
  ];
  return {
    // Each round adds rows to the large database.
    figures: {
      ...{ smallRows, largeRows, bodyBytes, rounds, speedRatio: ratio, probes, probeP99Ratio },
    },
    runs: runsOf(rounds, ['small', 'large']),
    targets: [
      target(`requests/s, ${largeRows} / ${smallRows} rows`, ratio, { min: 0.85 }),
      target(`earshot peak memory at ${largeRows} rows, MB`, peak, { max: peakMegabytes }),
      target('probe p99, during scans / idle', probeP99Ratio, { max: 3 }),
    ],
    faults: failed === 0 ? [] : [`${failed} probes not answered with 200`],
    text: [text.join('\n'), renderProbes(probes, largeRows, probeP99Ratio)],
  };
}

/** Creates an earshot database and fills it. Returns the data folder. */
async function createPrefilled(
  setting: BenchSetting,
  { bodyBytes }: GrowthOptions,
  rows: number,
): Promise<string> {
  const { endpoint, cleanup, progress } = setting;
  const dataFolder = cleanup.temporaryFolder(setting.folder);
  const running = await startServer('earshot', { endpoint, dataFolder, cleanup });
  await running.stop();
  await writeLog(databaseFile(dataFolder), prefilled(setting, rows, bodyBytes), (written) =>
    progress.show(`prefill: ${written} of ${rows} rows`),
  );
  return dataFolder;
}

const firstReceivedAtUs = Date.UTC(2026, 0, 1) * 1_000;
const intervalUs = 400_000;

/** Generates the notifications of the load with other product ids. */
function* prefilled(
  { ackIdForm, nextRun }: BenchSetting,
  rows: number,
  bodyBytes: number | undefined,
): Generator<LogEntry> {
  const templates = createBodyTemplates(ackIdForm);
  const run = nextRun();
  for (let index = 0; index < rows; index += 1) {
    const template = templates[index % templates.length];
    if (template === undefined) throw new Error('there are no templates');
    const { productName, event, subscriptionId } = template;
    const [ackId, productId] = [ackIdOf(ackIdForm, run, index), productIdOf(run, index)];
    const bytes = Buffer.from(template.bytes);
    writeIds(bytes, 0, template, { ackId, productId });
    const notificationDateUs = firstReceivedAtUs + index * intervalUs;
    yield {
      ...{ ackId, productId, productName, event, subscriptionId, notificationDateUs },
      receivedAtUs: notificationDateUs + 50_000_000,
      body: resized(bytes, bodyBytes ?? bytes.length),
    };
  }
}

/** Pads a body with spaces, which JSON allows, or truncates it, which makes it invalid JSON. */
function resized(bytes: Buffer, length: number): Buffer {
  if (length <= bytes.length) return bytes.subarray(0, length);
  return Buffer.concat([bytes, Buffer.alloc(length - bytes.length, ' ')]);
}

async function runProbes(
  setting: BenchSetting,
  { probeMs }: GrowthOptions,
  dataFolder: string,
): Promise<ProbeRound[]> {
  const { endpoint, cleanup, progress } = setting;
  const running = await startServer('earshot', { endpoint, dataFolder, cleanup });
  await waitUntilIdle(running);
  const probes: ProbeRound[] = [];
  for (let round = 1; round <= setting.rounds; round += 1) {
    const where = `probe, round ${round} of ${setting.rounds}`;
    progress.show(`${where}: idle`);
    const idle = await probe(setting, running.port, probeMs);
    progress.show(`${where}: during scans`);
    const stopScans = startScans(setting, dataFolder, running.port);
    const scanning = await probe(setting, running.port, probeMs);
    probes.push({ idle, scanning, scans: await stopScans() });
  }
  await running.stop();
  return probes;
}

const probeIntervalMs = 5;

/**
 * Sends GET /notifications every 5 ms over one connection for `durationMs`. Measures latency from the due time, so
 * that a long stall also counts for the requests that it delays.
 */
async function probe(
  { endpoint }: BenchSetting,
  port: number,
  durationMs: number,
): Promise<ProbeFigures> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const latencyUs = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 });
  let failures = 0;
  const send = async () => {
    const dueMs = performance.now();
    const status = await getStatus(endpoint, port, '/notifications', agent);
    latencyUs.record(Math.max(1, Math.round((performance.now() - dueMs) * 1_000)));
    if (status !== 200) failures += 1;
  };
  try {
    // Excludes the handshake from the measurement.
    await getStatus(endpoint, port, '/notifications', agent);
    const inFlight: Promise<void>[] = [];
    const timer = setInterval(() => inFlight.push(send()), probeIntervalMs);
    await delay(durationMs);
    clearInterval(timer);
    await Promise.all(inFlight);
  } finally {
    agent.destroy();
  }
  return {
    requests: latencyUs.count,
    p50Ms: latencyUs.percentile(50) / 1_000,
    p99Ms: latencyUs.percentile(99) / 1_000,
    maxMs: latencyUs.max / 1_000,
    failures,
  };
}

/**
 * Repeats a command and prints the number of output lines each time. Runs in a shell, because starting a process
 * pauses this measuring process for some milliseconds.
 */
const repeat = 'while true; do "$@" | wc -l; done';

/**
 * Scans the log repeatedly in other processes. The returned function stops this and resolves with the number of
 * completed scans; it rejects if one failed.
 */
function startScans({ endpoint, cleanup }: BenchSetting, dataFolder: string, port: number) {
  const query = ['scripts/earshot.js', 'query', '--order', 'oldest', '--output', 'ndjson'];
  const child = spawn('/bin/sh', ['-c', repeat, 'repeat', process.execPath, ...query], {
    cwd: projectFolder,
    env: earshotEnvironment(endpoint, dataFolder, port),
    // A separate process group, so that the query ends together with the shell.
    detached: true,
  });
  cleanup.ownProcess(child);
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return async (): Promise<number> => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    const [lines, errors] = await output;
    if (errors !== '') throw new Error(`the query failed:\n${errors}`);
    return lines.split('\n').filter((line) => line !== '').length;
  };
}

/** Waits until a server has no more background work, such as indexing the prefilled log. */
async function waitUntilIdle(running: RunningServer): Promise<void> {
  const giveUpMs = performance.now() + idleTimeoutMs;
  let beforeMs = readCpuMs(running.processId);
  while (beforeMs !== undefined && performance.now() < giveUpMs) {
    await delay(idleIntervalMs);
    const afterMs = readCpuMs(running.processId);
    if (afterMs === undefined || afterMs - beforeMs < idleCores * idleIntervalMs) return;
    beforeMs = afterMs;
  }
}

function renderProbes(
  probes: readonly ProbeRound[],
  largeRows: number,
  probeP99Ratio: number | null,
): string {
  const row = (name: string, state: 'idle' | 'scanning') => {
    const cell = (pick: (probed: ProbeFigures) => number, decimals = 0) =>
      figure(median(probes.map((round) => pick(round[state]))), decimals);
    return [
      name,
      cell(({ requests }) => requests),
      cell(({ p50Ms }) => p50Ms, 2),
      cell(({ p99Ms }) => p99Ms, 2),
      cell(({ maxMs }) => maxMs, 1),
    ];
  };
  const scans = probes.reduce((sum, round) => sum + round.scans, 0);
  return [
    `GET /notifications every 5 ms on the database of initially ${largeRows} rows`,
    alignTable([
      ['state', 'requests', 'p50 ms', 'p99 ms', 'max ms'],
      row('idle', 'idle'),
      row('during scans', 'scanning'),
    ]),
    '',
    `p99, during scans / idle: ${figure(probeP99Ratio, 2)} (${scans} completed scans of the log)`,
  ].join('\n');
}
