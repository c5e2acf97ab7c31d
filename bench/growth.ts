/** The same load on a small and on a large database, and the readiness probe on the large one. */
import { cpSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { createBodyTemplates, meanBodyBytes } from './bodies.ts';
import { flushToDisk } from './log-writer.ts';
import { type BenchSetting, measureServer, type RunFigures } from './measure.ts';
import { median } from './median.ts';
import { prefillDatabase } from './prefill.ts';
import { type ProbeFigures, probe, startScans } from './probe.ts';
import { readCpuMs } from './process-status.ts';
import type { Progress } from './progress.ts';
import { databaseFile, type RunningServer, startServer } from './servers.ts';

/** What growth is measured with. */
export interface GrowthOptions {
  readonly rounds: number;
  readonly smallRows: number;
  readonly largeRows: number;
  /** Size of the prefilled bodies; undefined is their real size. */
  readonly bodyBytes?: number | undefined;
  /** How long the probe runs in each of its two states. */
  readonly probeMs: number;
}

/** What growth costs: speed and memory at two sizes, and the probe at the larger. */
export interface Growth {
  readonly smallRows: number;
  /** Before the first round; every round's load adds its own rows to this database. */
  readonly largeRows: number;
  /** Mean size of the prefilled bodies, bytes. */
  readonly bodyBytes: number;
  readonly rounds: readonly { readonly small: RunFigures; readonly large: RunFigures }[];
  /** Requests per second, large to small: median of the rounds' ratios. */
  readonly speedRatio: number | null;
  readonly probes: readonly ProbeRound[];
  /** 99th percentile, scanning to idle: median of the rounds' ratios. */
  readonly probeP99Ratio: number | null;
}

/** The probe in its two states, one after the other. */
export interface ProbeRound {
  readonly idle: ProbeFigures;
  readonly scanning: ProbeFigures;
  /** Scans of the whole log that ran to their end meanwhile. */
  readonly scans: number;
}

const quietIntervalMs = 500;
const quietCores = 0.05;
const quietTimeoutMs = 600_000;

/** Prefills both databases, then alternates between them; the probe follows, same number of rounds. */
export async function runGrowth(
  setting: BenchSetting,
  options: GrowthOptions,
  progress: Progress,
): Promise<Growth> {
  const smallMaster = await createPrefilled(setting, options, options.smallRows, progress);
  const large = await createPrefilled(setting, options, options.largeRows, progress);
  const rounds: { small: RunFigures; large: RunFigures }[] = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    const where = `growth, round ${round} of ${options.rounds}`;
    progress.show(`${where}: ${options.smallRows} rows`);
    // A copy each round: the load itself adds many times the rows that the small one begins with.
    const small = copyFolder(setting, smallMaster);
    const smallFigures = await measureServer(setting, 'earshot', small, {
      prepare: waitUntilQuiet,
    });
    setting.cleanup.removeFolder(small);
    progress.show(`${where}: ${options.largeRows} rows`);
    const largeFigures = await measureServer(setting, 'earshot', large, {
      prepare: waitUntilQuiet,
    });
    rounds.push({ small: smallFigures, large: largeFigures });
  }
  const probes = await runProbes(setting, options, large, progress);
  setting.cleanup.removeFolder(smallMaster);
  setting.cleanup.removeFolder(large);
  return {
    smallRows: options.smallRows,
    largeRows: options.largeRows,
    bodyBytes: options.bodyBytes ?? meanBodyBytes(createBodyTemplates(setting.ackIdForm)),
    rounds,
    speedRatio: median(
      rounds.map((round) => round.large.requestsPerSecond / round.small.requestsPerSecond),
    ),
    probes,
    probeP99Ratio: median(probes.map(({ idle, scanning }) => scanning.p99Ms / idle.p99Ms)),
  };
}

/** Lets earshot create its database, stops it, and fills the file. Returns the data folder. */
async function createPrefilled(
  setting: BenchSetting,
  options: GrowthOptions,
  rows: number,
  progress: Progress,
): Promise<string> {
  const { endpoint, cleanup } = setting;
  const dataFolder = cleanup.temporaryFolder(setting.parentFolder);
  const running = await startServer('earshot', { endpoint, dataFolder, cleanup });
  await running.stop();
  await prefillDatabase(prefilledFile(dataFolder), {
    rows,
    ackIdForm: setting.ackIdForm,
    templates: createBodyTemplates(setting.ackIdForm),
    bodyBytes: options.bodyBytes,
    run: setting.nextRun(),
    onProgress: (written) => progress.show(`prefill: ${written} of ${rows} rows`),
  });
  return dataFolder;
}

async function runProbes(
  setting: BenchSetting,
  options: GrowthOptions,
  dataFolder: string,
  progress: Progress,
): Promise<ProbeRound[]> {
  const { endpoint, cleanup } = setting;
  const running = await startServer('earshot', { endpoint, dataFolder, cleanup });
  await waitUntilQuiet(running);
  const probes: ProbeRound[] = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    const where = `probe, round ${round} of ${options.rounds}`;
    progress.show(`${where}: idle`);
    const idle = await probe(endpoint, running.port, options.probeMs);
    progress.show(`${where}: during scans`);
    const scan = startScans(endpoint, dataFolder, running.port, cleanup);
    const scanning = await probe(endpoint, running.port, options.probeMs);
    probes.push({ idle, scanning, scans: await scan.stop() });
  }
  await running.stop();
  return probes;
}

function copyFolder(setting: BenchSetting, from: string): string {
  const folder = setting.cleanup.temporaryFolder(setting.parentFolder);
  cpSync(from, folder, { recursive: true });
  flushToDisk(prefilledFile(folder));
  return folder;
}

function prefilledFile(dataFolder: string): string {
  const file = databaseFile('earshot', dataFolder);
  if (file === undefined) throw new Error('earshot has no database file');
  return file;
}

/** Waits until a server has nothing of its own left to do, such as indexing what was prefilled. */
async function waitUntilQuiet(running: RunningServer): Promise<void> {
  const giveUpMs = performance.now() + quietTimeoutMs;
  let beforeMs = readCpuMs(running.processId);
  while (beforeMs !== undefined && performance.now() < giveUpMs) {
    await delay(quietIntervalMs);
    const afterMs = readCpuMs(running.processId);
    if (afterMs === undefined || afterMs - beforeMs < quietCores * quietIntervalMs) return;
    beforeMs = afterMs;
  }
}
