/** Benchmark of the intake from the queue of a pull subscription, with and without its request budget. */
import { setTimeout as delay } from 'node:timers/promises';
import { startSandbox } from '../src/sandbox/sandbox.ts';
import { openStore } from '../test/helpers/store.ts';
import { inMegabytes, quantile, renderTable, target } from './figures.ts';
import { type BenchContext, defineBenchmark, integer, number } from './harness.ts';
import { type Memory, readCpuMs, watchMemory } from './processes.ts';
import { registration, saveRegistration } from './registration.ts';
import { earshotProgram, startProcess } from './servers.ts';

/** Default of EARSHOT_PULL_REQUESTS_PER_MINUTE, and the entries that two requests read. */
const [requestsPerMinute, entriesPerPage] = [120, 20];

/** More than this machine can send. */
const unlimited = 100_000;

const timeoutMs = 900_000;

export const benchmark = defineBenchmark({
  command: 'npm run bench:pull --',
  about: `Measures \`earshot start\` while it reads the queue of a pull subscription, from a sandbox on the same
machine: for some time with the default request budget, then the rest without a budget. The product
index is enabled. Memory is flat if the last third of the time needs no more than the first.`,
  options: {
    entries: integer('entries of the queue', 50_000, 5_000),
    seconds: number('time with the default request budget', 120, 20),
  },
  async measure(chosen, context) {
    const { paced, rest, stored } = await measureBoth(chosen, context);
    const possible = (requestsPerMinute / 2) * entriesPerPage;
    return {
      setting: `a queue of ${chosen.entries} entries`,
      figures: { paced, rest, stored },
      text: [
        renderTable(
          [paced, rest],
          [
            ['requests/min', (one) => String(one.requestsPerMinute)],
            ['entries', ({ entries }) => entries],
            ['s', ({ seconds }) => seconds, 1],
            ['entries/min', perMinute],
            ['CPU s', ({ cpuSeconds }) => cpuSeconds, 1],
            ['peak MB', ({ peakBytes }) => inMegabytes(peakBytes)],
            ['memory: last third to first', ({ growth }) => growth, 2],
          ],
        ),
      ],
      targets: [
        target(
          'entries/min with the default budget, to the possible',
          perMinute(paced) / possible,
          {
            min: 0.95,
          },
        ),
        target('memory of the last third to the first, with the budget', paced.growth, {
          max: 1.1,
        }),
        target('the same without a budget', rest.growth, { max: 1.1 }),
        target('peak memory, MB', inMegabytes(rest.peakBytes), { max: 350 }),
      ],
      faults: stored === chosen.entries ? [] : [`${chosen.entries} published, ${stored} stored`],
    };
  },
});

async function measureBoth(
  { entries, seconds }: { entries: number; seconds: number },
  context: BenchContext,
) {
  const queue = await openQueue(entries, context);
  try {
    const paced = await readQueue(queue, context, { requestsPerMinute, seconds });
    const rest = await readQueue(queue, context, { requestsPerMinute: unlimited, seconds: null });
    return { paced, rest, stored: await countStored(queue.dataFolder) };
  } finally {
    await queue.sandbox.close();
  }
}

type Queue = Awaited<ReturnType<typeof openQueue>>;

/** Publishes the entries, and registers the subscription in a new data directory. */
async function openQueue(entries: number, { cleanup, progress, folder }: BenchContext) {
  const dataFolder = cleanup.temporaryFolder(folder);
  const sandbox = await startSandbox({ now: Date.now, count: 0, eventsMax: 2 * entries });
  const { id } = sandbox.addSubscription({ type: 'pull' });
  for (let done = 0; done < entries; done += 1_000) {
    progress.show(`publishing: ${done} of ${entries}`);
    await sandbox.publishNow(Math.min(1_000, entries - done));
  }
  const own = { type: 'pull', events: ['created'], subscriptionId: id } as const;
  await saveRegistration(dataFolder, registration('bench', Date.now() * 1_000, own));
  return { sandbox, dataFolder };
}

interface Reading {
  readonly requestsPerMinute: number;
  /** Entries read, from the first to the last acknowledgement. */
  readonly entries: number;
  readonly seconds: number;
  readonly cpuSeconds: number | null;
  readonly peakBytes: number | null;
  /** Median memory of the last third of the time, relative to the first. */
  readonly growth: number | null;
}

/** Runs the receiver for some time (null: until the queue is empty). */
async function readQueue(
  { sandbox, dataFolder }: Queue,
  { cleanup, progress }: BenchContext,
  setting: { requestsPerMinute: number; seconds: number | null },
): Promise<Reading> {
  const length = () => sandbox.queues()[0]?.length ?? 0;
  const before = length();
  const receiver = startProcess({
    words: earshotProgram('start'),
    folder: dataFolder,
    env: environmentOf(sandbox, dataFolder, setting.requestsPerMinute),
    logFile: `${dataFolder}/earshot.log`,
    cleanup,
  });
  const processId = receiver.child.pid ?? 0;
  const startMs = performance.now();
  const ended = async (isDone: () => boolean) => {
    while (!isDone()) {
      if (!receiver.isRunning()) throw new Error(`earshot ended:\n${receiver.log().slice(-2_000)}`);
      if (performance.now() - startMs > timeoutMs) throw new Error(`${length()} entries are left`);
      progress.show(`${setting.requestsPerMinute} requests/min: ${length()} entries left`);
      await delay(100);
    }
  };
  await ended(() => length() < before);
  const [firstMs, first, cpuMs] = [performance.now(), length(), readCpuMs(processId)];
  const memory = watchMemory(processId, 500);
  const endMs = setting.seconds === null ? timeoutMs : setting.seconds * 1_000;
  await ended(() => length() === 0 || performance.now() - firstMs > endMs);
  const [seconds, entries] = [(performance.now() - firstMs) / 1_000, first - length()];
  const usedMs = readCpuMs(processId);
  const samples = memory.stop();
  await receiver.stop();
  return {
    ...{ requestsPerMinute: setting.requestsPerMinute, entries, seconds },
    cpuSeconds: usedMs === undefined || cpuMs === undefined ? null : (usedMs - cpuMs) / 1_000,
    peakBytes: samples.at(-1)?.peakResidentBytes ?? null,
    growth: growthOf(samples),
  };
}

function growthOf(samples: readonly Memory[]): number | null {
  const third = Math.floor(samples.length / 3);
  const [early, late] = [samples.slice(0, third), samples.slice(samples.length - third)].map(
    (some) =>
      quantile(
        some.map(({ residentBytes }) => residentBytes),
        0.5,
      ),
  );
  return early && late ? late / early : null;
}

function environmentOf(
  { catalogueUrl, tokenUrl }: Queue['sandbox'],
  dataFolder: string,
  perMinute: number,
): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    EARSHOT_DATA_DIR: dataFolder,
    EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
    EARSHOT_CATALOGUE_URL: catalogueUrl,
    EARSHOT_TOKEN_URL: tokenUrl,
    EARSHOT_ACCOUNT_USERNAME: 'sandbox',
    EARSHOT_ACCOUNT_PASSWORD: 'sandbox',
    EARSHOT_PULL_REQUESTS_PER_MINUTE: String(perMinute),
    // The comparison waits for the queue, and is measured elsewhere.
    EARSHOT_RECONCILE: 'off',
  };
}

async function countStored(dataFolder: string): Promise<number> {
  const store = await openStore({ dataDir: dataFolder });
  const { notifications } = await store.counts();
  await store.close();
  return notifications;
}

const perMinute = ({ entries, seconds }: Reading) => (entries / seconds) * 60;
