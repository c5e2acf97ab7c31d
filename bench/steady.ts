/** Benchmark of steady load with everything enabled: memory over time, processor time, latency, bounded queues. */
import { writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { sinkReader, sinkWaitingMax } from '../src/features/sinks/terms.ts';
import { waitingMax as summariesWaitingMax } from '../src/features/summary/jobs.ts';
import { summaryReader } from '../src/features/summary/terms.ts';
import { inMegabytes, quantile, renderTable, target } from './figures.ts';
import { type Cleanup, defineBenchmark, integer, number } from './harness.ts';
import {
  type BenchSetting,
  createSetting,
  faultsOf,
  measureServer,
  readDatabase,
} from './measure.ts';
import { templateCounts } from './notifications.ts';
import { freePort, watchMemory } from './processes.ts';
import { databaseFile, startHook } from './servers.ts';

const connections = 8;

/** Longest time of the baseline, which shows no change over time. */
const baselineSecondsMax = 60;

export const benchmark = defineBenchmark({
  command: 'npm run bench:steady --',
  about: `Measures earshot with a fixed rate of notifications over HTTPS, in these states:
  nothing else  no index, sink, summaries or queries: the baseline of the latency
  everything    index, a webhook that answers after a second, summaries of every product by a service that
                never answers, one program that queries the private listener four times a second, a live stream`,
  options: {
    seconds: number('time with everything enabled', 600, 20),
    rate: integer('notifications per second', 200),
  },
  async measure({ seconds, rate }, context) {
    const load = { rounds: 1, connections, seconds, 'warm-up-seconds': 2 };
    const setting = {
      ...(await createSetting(load, context)),
      ratePerSecond: rate,
      templateCount: templateCounts.distinct,
    };
    const baseline = { ...setting, measureMs: 1_000 * Math.min(seconds, baselineSecondsMax) };
    const alone = await measureState(baseline, 'nothing else');
    const all = await measureState(setting, 'everything');
    const { queues, clients } = all;
    return {
      setting: `${rate} notifications/s; ${setting.text}`,
      figures: { measured: [alone, all] },
      text: [
        renderTable(
          [alone, all],
          [
            ['state', ({ state }) => state],
            ['notifications/s', ({ run }) => run.requestsPerSecond, 1],
            ['p50 ms', ({ run }) => run.p50Ms, 1],
            ['p99 ms', ({ run }) => run.p99Ms, 1],
            ['max ms', ({ run }) => run.maxMs, 1],
            ['cores', ({ run }) => run.serverCores, 2],
            ['other cores', ({ run }) => run.otherCores, 2],
            ['peak MB', ({ run }) => inMegabytes(run.peakResidentBytes)],
            [
              'MB at the start, each minute, at the end',
              ({ residentMegabytes }) => residentMegabytes.join(', '),
            ],
          ],
        ),
        renderTable(Object.entries(queues ?? {}), [
          ['readers of the log at the end, everything', ([name]) => name],
          ['', ([, value]) => value],
        ]),
        renderTable(Object.entries(clients?.statuses ?? {}), [
          ['answers of the private listener', ([status]) => status],
          ['', ([, count]) => count],
          ['p99 ms', () => quantile(clients?.latencyMs ?? [], 0.99)],
        ]),
      ],
      targets: [
        target('peak memory, MB', inMegabytes(all.run.peakResidentBytes), { max: 350 }),
        target('cores', all.run.serverCores, { max: 0.4 }),
        target('p99 of a push, ms', all.run.p99Ms, { max: 36 }),
        target('p99, everything / nothing else', all.run.p99Ms / alone.run.p99Ms, { max: 5 }),
        target('waiting items of the sink', queues?.sinkWaiting ?? null, { max: sinkWaitingMax }),
        target('waiting summaries', queues?.summariesWaiting ?? null, { max: summariesWaitingMax }),
      ],
      faults: [alone, all].flatMap(({ run }) => faultsOf(run)),
    };
  },
});

const sampleMs = 1_000;

async function measureState(setting: BenchSetting, state: 'nothing else' | 'everything') {
  const { cleanup, progress, folder } = setting;
  const dataFolder = cleanup.temporaryFolder(folder);
  const consolePort = await freePort();
  const isFull = state === 'everything';
  const environment = isFull
    ? await enableEverything(cleanup, dataFolder, consolePort)
    : { EARSHOT_INDEX: 'off', EARSHOT_CONSOLE_LISTEN: 'off' };
  let clients: ReturnType<typeof startQueryLoop> | undefined;
  let watched: ReturnType<typeof watchMemory> | undefined;
  let queues: Queues | null = null;
  const run = await measureServer(setting, 'earshot', dataFolder, {
    environment,
    prepare: async ({ processId }) => {
      watched = watchMemory(processId, sampleMs, ({ residentBytes }) =>
        progress.show(`${state}: ${Math.round(residentBytes / 1e6)} MB`),
      );
      if (isFull) clients = startQueryLoop(`http://127.0.0.1:${consolePort}`);
    },
    loaded: () => {
      clients?.stop();
      if (isFull) queues = readQueues(dataFolder);
    },
  });
  const memory = watched?.stop() ?? [];
  cleanup.removeFolder(dataFolder);
  const perMinute = 60_000 / sampleMs;
  const kept = memory.filter((_, i) => i % perMinute === 0 || i === memory.length - 1);
  const residentMegabytes = kept.map(({ residentBytes }) => Math.round(residentBytes / 1e6));
  // Assigned in a callback.
  return { state, run, residentMegabytes, queues: queues as Queues | null, clients };
}

/** Starts the services, writes the configuration file, and returns the environment. */
async function enableEverything(
  cleanup: Cleanup,
  dataFolder: string,
  consolePort: number,
): Promise<NodeJS.ProcessEnv> {
  const service = `http://127.0.0.1:${await startHook(cleanup)}`;
  const sinks = { slow: { webhook: `${service}/slow`, from: 'start' } };
  const config = `export default ${JSON.stringify({ sinks })};\n`;
  writeFileSync(join(dataFolder, 'earshot.config.ts'), config);
  return {
    EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${consolePort}`,
    EARSHOT_SUMMARY: 'each',
    EARSHOT_INFERENCE_URL: `${service}/hang`,
    EARSHOT_INFERENCE_API_KEY: 'bench-key-of-no-service',
    EARSHOT_INFERENCE_MODEL: 'bench/model',
  };
}

type Queues = ReturnType<typeof readQueues>;

/** Returns the lag of the readers of the log, and their waiting items, at the end of the load. */
function readQueues(dataFolder: string) {
  return readDatabase(databaseFile(dataFolder), (db) => {
    const value = (sql: string, ...bound: string[]) => {
      const statement = db.prepare(sql).pluck();
      return Number(statement.get(...bound) ?? 0);
    };
    const last = value('SELECT max(position) FROM notification');
    const behind = (reader: string) =>
      last - value('SELECT position FROM reader_cursor WHERE reader = ?', reader);
    return {
      sinkBehind: behind(sinkReader('slow')),
      sinkWaiting: value("SELECT count(*) FROM sink_item WHERE state = 'waiting'"),
      summariesBehind: behind(summaryReader),
      summariesWaiting: value('SELECT count(*) FROM summary WHERE due_at_us IS NOT NULL'),
    };
  });
}

/** Requests of a program, a metrics scraper and a browser. */
const loopPaths = [
  '/api/products?limit=50',
  "/api/products?limit=50&count=true&filter=contains(Name,'MSIL2A')",
  '/api/products?limit=50&bbox=5,45,15,53',
  '/api/products?limit=200&record=true',
  "/odata/v1/Products?$top=20&$filter=Collection/Name eq 'SENTINEL-1'",
  '/api/notifications?limit=100',
  '/api/footprints?limit=1000',
  '/api/timeliness',
  '/api/status',
  '/metrics',
  '/',
  '/products',
  '/sinks',
];

/** Pause between two queries. */
const pauseMs = 250;

/** Queries one answer after the other, with a pause, and keeps one live stream open. */
function startQueryLoop(url: string) {
  const agent = new Agent({ keepAlive: true });
  const stopping = new AbortController();
  const { signal } = stopping;
  const statuses: Record<string, number> = {};
  const latencyMs: number[] = [];
  const query = async () => {
    for (let turn = 0; !signal.aborted; turn += 1) {
      const startMs = performance.now();
      const path = encodeURI(loopPaths[turn % loopPaths.length] ?? '');
      const status = await request(`${url}${path}`, agent);
      if (signal.aborted) return;
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === '200') latencyMs.push(performance.now() - startMs);
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  };
  void query();
  const stream = get(`${url}/api/live`, (answer) => answer.resume().on('error', () => undefined));
  stream.on('error', () => undefined);
  return {
    statuses,
    latencyMs,
    stop: () => {
      stopping.abort();
      stream.destroy();
      agent.destroy();
    },
  };
}

/** Reads an answer to its end without keeping it. Resolves with the status, or `broken` without an answer. */
function request(url: string, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const broken = () => resolve('broken');
    get(url, { agent, headers: { 'accept-encoding': 'gzip' } }, (answer) => {
      answer.resume().on('error', broken);
      answer.on('end', () => resolve(String(answer.statusCode)));
    }).on('error', broken);
  });
}
