/** Intake benchmark: earshot against two other servers, in turn. */
import { setTimeout as delay } from 'node:timers/promises';
import { currentProductFile } from '../src/features/products/index-file/product-file.ts';
import { figure, inMegabytes, median, target } from './figures.ts';
import { defineBenchmark } from './harness.ts';
import {
  createSetting,
  faultsOf,
  loadOptions,
  measureInTurn,
  measureServer,
  readDatabase,
  renderRounds,
  speedRatio,
} from './measure.ts';
import { databaseFile, serverNames } from './servers.ts';

/** Maximum processor use of other programs, and of the load generator, in cores, without a caution. */
const [otherCoresMax, generatorCoresMax] = [0.25, 0.85];

export const benchmark = defineBenchmark({
  command: 'npm run bench --',
  about: `Measures earshot against two baselines in one run, over HTTPS on loopback, with the same certificate
and the same notifications of real size:
  bare         a Hono server that reads the body and stores nothing: the upper limit
  twenty-line  Hono, Basic Auth and one durable SQLite insert per request: a simple receiver
Then checks that the database file contains every notification that was answered with 200.`,
  options: loadOptions,
  async measure(chosen, context) {
    const setting = await createSetting(chosen, context);
    const indexing: (number | null)[] = [];
    const rounds = await measureInTurn(setting, 'intake', serverNames, (server, dataFolder) =>
      measureServer(setting, server, dataFolder, {
        loaded: async () => {
          if (server === 'earshot') indexing.push(await untilIndexed(dataFolder));
        },
      }),
    );
    const runs = rounds.flatMap((round) => Object.values(round));
    const most = (pick: (run: (typeof runs)[number]) => number | null) =>
      Math.max(...runs.map((one) => pick(one) ?? 0));
    const [load, others] = [most((run) => run.generatorCores), most((run) => run.otherCores)];
    const toTwentyLine = median(
      rounds.map((round) => round.earshot.p99Ms / round['twenty-line'].p99Ms),
    );
    const peak = median(rounds.map(({ earshot }) => earshot.peakResidentBytes));
    return {
      setting: setting.text,
      figures: { rounds, indexing },
      text: [
        renderRounds('server', serverNames, rounds),
        `The load generator used at most ${figure(load, 2)} cores, other programs ${figure(others, 2)}.`,
        ...(load > generatorCoresMax ? ['Caution: the load generator may limit the rate.'] : []),
        ...(others > otherCoresMax ? ['Caution: repeat on an idle machine.'] : []),
      ],
      targets: [
        target('requests/s, earshot / twenty-line', speedRatio(rounds, 'earshot', 'twenty-line'), {
          min: 4,
        }),
        target('requests/s, earshot / bare', speedRatio(rounds, 'earshot', 'bare'), { min: 0.45 }),
        target('p99, earshot / twenty-line', toTwentyLine, { max: 0.3 }),
        target(`seconds to index ${burst} after a burst`, median(indexing), { max: 30 }),
        target('earshot peak memory, MB', inMegabytes(peak), { max: 300 }),
      ],
      faults: runs.flatMap(faultsOf),
    };
  },
});

const burst = 100_000;
const catchUpMaxMs = 300_000;

/**
 * Waits until the index has the last position of the log. Returns the seconds for a burst of 100,000 at this speed; null
 * if the index was not behind. Throws after a time limit.
 */
async function untilIndexed(dataFolder: string): Promise<number | null> {
  const indexFile = currentProductFile(dataFolder) ?? '';
  const valueIn = (file: string, sql: string) =>
    readDatabase(file, (db) => Number(db.prepare(sql).pluck().get()));
  const indexed = () => valueIn(indexFile, 'SELECT position FROM progress');
  const last = valueIn(databaseFile(dataFolder), 'SELECT max(position) FROM notification');
  const startMs = performance.now();
  const behind = last - indexed();
  while (indexed() < last) {
    if (performance.now() - startMs > catchUpMaxMs) throw new Error('the index did not catch up');
    await delay(50);
  }
  return behind === 0 ? null : ((performance.now() - startMs) / 1_000 / behind) * burst;
}
