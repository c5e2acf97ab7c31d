/** One run: a data directory with a registered subscription, and `earshot reconcile` beside its memory. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { openStore } from '../src/store/store.ts';
import type { Cleanup } from './cleanup.ts';
import { type Memory, readCpuMs, readMemory } from './process-status.ts';
import type { Progress } from './progress.ts';
import type { AskedList, Catalogue } from './reconcile-catalogue.ts';
import { projectFolder } from './servers.ts';

/** Of one run. Times in seconds, sizes in bytes; null where /proc does not tell. */
export interface ReconcileFigures {
  readonly requestsPerMinute: number;
  readonly events: number;
  readonly recovered: number;
  readonly missing: number;
  readonly requests: number;
  /** Within any 60 seconds, as the catalogue saw them come. */
  readonly requestsInAMinuteMost: number;
  readonly wallSeconds: number;
  /** What the command says of its waiting: for answers, and for its turn. */
  readonly answersSeconds: number;
  readonly waitedSeconds: number;
  /** The catalogue's own time for its answers. */
  readonly catalogueSeconds: number;
  readonly cpuSeconds: number | null;
  readonly peakResidentBytes: number | null;
  readonly residentBytesMedian: number | null;
  readonly logBytes: number;
  /** The same once more: nothing is left to find. */
  readonly foundAgain: number;
}

const sampleMs = 250;

/** The sandbox's products were published some time before it tells of them. */
const publishedBeforeMs = 600_000;

const documentSchema = z.object({
  requests: z.number(),
  seconds: z.number(),
  answersSeconds: z.number(),
  waitedSeconds: z.number(),
  counts: z.array(
    z.object({
      event: z.string(),
      expected: z.number(),
      recovered: z.number(),
      missing: z.number(),
    }),
  ),
});

/** What one run needs. */
export interface RunSetting {
  readonly catalogue: Catalogue;
  readonly requestsPerMinute: number;
  readonly parentFolder: string;
  readonly cleanup: Cleanup;
  readonly progress: Progress;
}

/** Rejects when the command fails. */
export async function runReconciliation(setting: RunSetting): Promise<ReconcileFigures> {
  const { catalogue, requestsPerMinute, parentFolder, cleanup } = setting;
  const dataFolder = cleanup.temporaryFolder(parentFolder);
  const toMs = await register(dataFolder);
  await catalogue.asked();
  const window = [
    ...['--from', new Date(catalogue.sinceMs - publishedBeforeMs).toISOString()],
    ...['--to', new Date(toMs).toISOString()],
  ];
  const { document, cpuMs, memory } = await command(window, dataFolder, setting);
  const asked = await catalogue.asked();
  requireAll(document.counts, catalogue.holdings);
  const again = await command([...window, '--check'], dataFolder, {
    ...setting,
    requestsPerMinute: 6_000,
  });
  const sum = (key: 'expected' | 'recovered' | 'missing', counts = document.counts) =>
    counts.reduce((total, row) => total + row[key], 0);
  const logBytes = statSync(join(dataFolder, 'earshot.db')).size;
  cleanup.removeFolder(dataFolder);
  const residents = memory.map(({ residentBytes }) => residentBytes).sort((a, b) => a - b);
  return {
    requestsPerMinute,
    events: sum('expected'),
    recovered: sum('recovered'),
    missing: sum('missing'),
    requests: document.requests,
    requestsInAMinuteMost: mostWithin(asked, 60_000),
    wallSeconds: document.seconds,
    answersSeconds: document.answersSeconds,
    waitedSeconds: document.waitedSeconds,
    catalogueSeconds: servedSeconds(asked),
    cpuSeconds: cpuMs === undefined ? null : cpuMs / 1_000,
    peakResidentBytes: memory.at(-1)?.peakResidentBytes ?? null,
    residentBytesMedian: residents[Math.floor(residents.length / 2)] ?? null,
    logBytes,
    foundAgain: sum('missing', again.document.counts),
  };
}

/** All that the catalogue holds was published or deleted in the window. */
function requireAll(
  counts: readonly { event: string; expected: number }[],
  { products, deletedProducts }: Catalogue['holdings'],
): void {
  const expected = (event: string) => counts.find((row) => row.event === event)?.expected ?? 0;
  if (expected('created') === products && expected('deleted') === deletedProducts) return;
  throw new Error(
    `The catalogue holds ${products} products and ${deletedProducts} deleted ones; ${expected('created')} and ${expected('deleted')} were seen.`,
  );
}

/** A new data directory that has asked for everything all along, and was told of nothing. Returns the time. */
async function register(dataFolder: string): Promise<number> {
  const store = await openStore({ dataDir: dataFolder, nowUs: () => Date.now() * 1_000 });
  const nowMs = Date.now();
  const nowUs = nowMs * 1_000;
  const events = ['created', 'modified', 'deleted'] as const;
  await store.administration.commit({
    save: {
      ...{ name: 'bench', events, filter: '', status: 'running', unfinished: false },
      ...{ subscriptionId: '00000000-0000-4000-8000-000000000000', credentialsDigest: null },
      ...{ activityAtUs: nowUs, notifiedAtUs: nowUs, runningSeenAtUs: nowUs },
      ...{ pausedSeenAtUs: null, heldBy: null, reported: null },
    },
  });
  await store.close();
  return nowMs;
}

async function command(
  argv: readonly string[],
  dataFolder: string,
  { catalogue, requestsPerMinute, cleanup, progress }: RunSetting,
) {
  // As `npm run earshot` has it.
  const program = ['--max-semi-space-size=16', 'scripts/earshot.js'];
  const child = spawn(process.execPath, [...program, 'reconcile', '--json', ...argv], {
    cwd: projectFolder(),
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      EARSHOT_DATA_DIR: dataFolder,
      EARSHOT_CATALOGUE_URL: catalogue.url,
      EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: String(requestsPerMinute),
    },
  });
  cleanup.ownProcess(child);
  const watched = watch(child.pid ?? 0, (seconds, { residentBytes }) =>
    progress.show(
      `${requestsPerMinute} requests a minute: ${seconds} s, ${Math.round(residentBytes / 1e6)} MB`,
    ),
  );
  const ended = once(child, 'exit');
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  await ended;
  const { cpuMs, memory } = watched.end();
  // With --check, 3 says that something is missing, and the document says what.
  if (child.exitCode !== 0 && child.exitCode !== 3) {
    throw new Error(`earshot reconcile ended with ${child.exitCode}: ${err}`);
  }
  return { document: documentSchema.parse(JSON.parse(out)), cpuMs, memory };
}

/** Looks at a process again and again; the most it ever took is the last sample's. */
function watch(processId: number, onSample: (seconds: number, memory: Memory) => void) {
  const memory: Memory[] = [];
  let cpuMs: number | undefined;
  const startMs = performance.now();
  const timer = setInterval(() => {
    const sample = readMemory(processId);
    if (sample === undefined) return;
    memory.push(sample);
    cpuMs = readCpuMs(processId) ?? cpuMs;
    onSample(Math.round((performance.now() - startMs) / 1_000), sample);
  }, sampleMs);
  return {
    end: () => {
      clearInterval(timer);
      return { cpuMs, memory };
    },
  };
}

/** The most requests that began within any such time. */
function mostWithin(asked: readonly AskedList[], windowMs: number): number {
  let most = 0;
  let first = 0;
  for (const [i, { startMs }] of asked.entries()) {
    while ((asked[first]?.startMs ?? startMs) <= startMs - windowMs) first += 1;
    most = Math.max(most, i - first + 1);
  }
  return most;
}

function servedSeconds(asked: readonly AskedList[]): number {
  const servedMs = asked.reduce(
    (sum, { startMs, endMs }) => sum + (endMs === null ? 0 : endMs - startMs),
    0,
  );
  return servedMs / 1_000;
}
