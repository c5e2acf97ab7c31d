/** Measures the memory of `earshot start` while it compares a past without notifications with the catalogue. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  alignTable,
  figure,
  inMegabytes,
  megabytes,
  type TargetResult,
  target,
} from './figures.ts';
import type { BenchContext } from './harness.ts';
import { createSetting, readDatabase } from './measure.ts';
import { readCpuMs, readMemory } from './processes.ts';
import { databaseFile, startServer } from './servers.ts';

/** Sizes in bytes; null without /proc. */
export interface StartFigures {
  /** Before the first comparison. */
  readonly idleBytes: number | null;
  /** Maximum since the start. */
  readonly peakBytes: number | null;
  /** Ten seconds after the last recovered notification. */
  readonly afterBytes: number | null;
  readonly recovered: number;
  /** Time from the first to the last recovered notification. */
  readonly seconds: number;
  /** Processor time in that time. */
  readonly cpuSeconds: number | null;
}

const pollMs = 250;
/** The comparison has ended when nothing was recovered for this long: longer than a page takes at the default rate. */
const quietMs = 10_000;
const timeoutMs = 1_800_000;

/** `dataFolder` has a registration since before the past. Rejects if less than `atLeast` is recovered in time. */
export async function measureStart(
  context: BenchContext,
  {
    catalogueUrl,
    dataFolder,
    atLeast,
  }: { catalogueUrl: string; dataFolder: string; atLeast: number },
): Promise<StartFigures> {
  const { cleanup, progress } = context;
  const load = { rounds: 1, connections: 1, seconds: 1, 'warm-up-seconds': 1 };
  const { endpoint } = await createSetting(load, context);
  const environment = { EARSHOT_CATALOGUE_URL: catalogueUrl };
  const { processId, stop } = await startServer('earshot', {
    ...{ endpoint, dataFolder, cleanup, environment },
  });
  const startMs = performance.now();
  let [idleBytes, recovered] = [residentBytes(processId), 0];
  let [first, last] = [startMs, startMs];
  let cpuMs = [readCpuMs(processId), readCpuMs(processId)];
  while (recovered < atLeast || performance.now() - last < quietMs) {
    await delay(pollMs);
    const found = countRecovered(dataFolder);
    const nowMs = performance.now();
    if (nowMs - startMs > timeoutMs) throw new Error(`earshot start recovered only ${found}`);
    if (found === 0) idleBytes = residentBytes(processId);
    if (found > recovered) {
      if (recovered === 0) [first, cpuMs] = [nowMs, [readCpuMs(processId)]];
      last = nowMs;
      cpuMs[1] = readCpuMs(processId);
    }
    recovered = found;
    progress.show(`start: ${recovered} recovered, ${megabytes(residentBytes(processId))} MB`);
  }
  const memory = readMemory(processId);
  await stop();
  const [beforeMs, afterMs] = cpuMs;
  return {
    ...{ idleBytes, recovered, seconds: (last - first) / 1_000 },
    peakBytes: memory?.peakResidentBytes ?? null,
    afterBytes: memory?.residentBytes ?? null,
    cpuSeconds:
      beforeMs === undefined || afterMs === undefined ? null : (afterMs - beforeMs) / 1_000,
  };
}

const residentBytes = (processId: number) => readMemory(processId)?.residentBytes ?? null;

function countRecovered(dataFolder: string): number {
  const sql = "SELECT count(*) FROM notification WHERE source = 'reconcile'";
  return readDatabase(databaseFile(dataFolder), (db) => Number(db.prepare(sql).pluck().get()));
}

export function startTargets({ peakBytes }: StartFigures): TargetResult[] {
  return [target('start: peak memory, MB', inMegabytes(peakBytes), { max: 320 })];
}

export function renderStart(one: StartFigures): string {
  const header = ['earshot start', 'recovered', 's', 'CPU s', 'MB before', 'peak MB', 'MB after'];
  const { idleBytes, peakBytes, afterBytes } = one;
  return alignTable([
    header,
    [
      ...['', String(one.recovered), figure(one.seconds, 1), figure(one.cpuSeconds, 1)],
      ...[idleBytes, peakBytes, afterBytes].map(megabytes),
    ],
  ]);
}
