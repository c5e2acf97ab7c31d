/**
 * The parts of the intake's benchmark that are measured in turns: the three servers, and earshot without and with its
 * product index, its summaries and its sinks. Each has its figures, its targets, its faults and its text.
 */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import {
  figure,
  inMegabytes,
  median,
  type Spread,
  spreadOf,
  type TargetResult,
  target,
} from './figures.ts';
import {
  type BenchSetting,
  measureInTurn,
  measureServer,
  type RunFigures,
  readDatabase,
  renderRounds,
  runsOf,
  speedRatio,
  speedRatios,
} from './measure.ts';
import { templateCounts } from './notifications.ts';
import { databaseFile, serverNames, startService } from './servers.ts';

/** Promised of earshot under any load. */
export const peakMegabytes = 300;

const offAndOn = ['off', 'on'] as const;

/** What one part of the benchmark has found. */
export interface MeasuredPart {
  /** What `--json` prints. */
  readonly figures: object;
  readonly runs: readonly RunFigures[];
  readonly targets: readonly TargetResult[];
  readonly faults: readonly string[];
  readonly text: readonly string[];
}

/** Above this share of a core, a generator is too near its own limit to judge a server. */
const generatorCoresMax = 0.85;

/** The three servers in turn. Ratios are formed within a round, then the median taken. */
export async function measureComparison(setting: BenchSetting): Promise<MeasuredPart> {
  const rounds = await measureInTurn(setting, 'comparison', serverNames, (server, dataFolder) =>
    measureServer(setting, server, dataFolder),
  );
  const earshotToTwentyLine = speedRatio(rounds, 'earshot', 'twenty-line');
  const earshotToBare = speedRatio(rounds, 'earshot', 'bare');
  const p99ToTwentyLine = median(
    rounds.map((round) => round.earshot.p99Ms / round['twenty-line'].p99Ms),
  );
  const peak = median(rounds.map(({ earshot }) => earshot.peakResidentBytes));
  const runs = runsOf(rounds, serverNames);
  const most = Math.max(...runs.map(({ generatorCores }) => generatorCores));
  const text = [
    renderRounds('server', serverNames, rounds),
    '',
    `requests/s, earshot / twenty-line: ${figure(earshotToTwentyLine, 2)}`,
    `requests/s, earshot / bare:        ${figure(earshotToBare, 2)}`,
    most < generatorCoresMax
      ? `The load generator, a process of its own, never used more than ${figure(most, 2)} of a core: it did not limit the rate.`
      : `Caution: the load generator used ${figure(most, 2)} of a core and may have limited the rate.`,
  ];
  return {
    ...{ runs, faults: [], text: [text.join('\n')] },
    figures: { rounds, earshotToTwentyLine, earshotToBare, p99ToTwentyLine },
    targets: [
      target('requests/s, earshot / twenty-line', earshotToTwentyLine, { min: 3 }),
      target('requests/s, earshot / bare', earshotToBare, { min: 1 / 3 }),
      target('p99, earshot / twenty-line', p99ToTwentyLine, { max: 1 }),
      target('earshot peak memory, MB', inMegabytes(peak), { max: peakMegabytes }),
    ],
  };
}

/** Intake with the product index off and on in turn, and how fast the index follows while notifications come in. */
export async function measureIndexing(setting: BenchSetting): Promise<MeasuredPart> {
  const distinct = { ...setting, templateCount: templateCounts.distinct };
  const measured = await measureInTurn(setting, 'index', offAndOn, async (state, dataFolder) => {
    const sampler = sampleIndex(dataFolder);
    const figures = await measureServer(distinct, 'earshot', dataFolder, {
      environment: { EARSHOT_INDEX: state },
      loaded: sampler.stop,
    });
    return { figures, ...sampler.result() };
  });
  // Null when the index was not seen to move; what it was behind when the load ended.
  const rounds = measured.map(({ off, on: { figures, indexed, indexedPerSecond } }) => {
    const behind = Math.max(0, figures.answered - indexed);
    return { off: off.figures, on: figures, indexedPerSecond, behind };
  });
  const ratio = speedRatio(rounds, 'on', 'off');
  const indexedPerSecond = median(rounds.map((round) => round.indexedPerSecond));
  const behind = median(rounds.map((round) => round.behind));
  const text = [
    'Intake with the product index off and on in turn, each notification of a product of its own',
    renderRounds('index', offAndOn, rounds),
    '',
    `requests/s, on / off: ${figure(ratio, 2)}`,
    `indexed/s meanwhile:  ${figure(indexedPerSecond)} (${figure(behind)} behind when the load ended)`,
  ];
  return {
    ...{ runs: runsOf(rounds, offAndOn), faults: [], text: [text.join('\n')] },
    figures: { rounds, speedRatio: ratio, indexedPerSecond },
    targets: [
      target('requests/s, index on / off', ratio, { min: 0.8 }),
      target('notifications indexed/s while they come in', indexedPerSecond, { min: 2_000 }),
    ],
  };
}

const sampleIntervalMs = 100;

/** Watches the position of the index, from its first step to the end of the load. */
function sampleIndex(dataFolder: string) {
  let database: Database.Database | undefined;
  let first: { atMs: number; position: number } | undefined;
  let last: { atMs: number; position: number } | undefined;
  const sample = () => {
    try {
      const name = readdirSync(dataFolder).find((file) => /^products-\d+\.db$/.test(file));
      if (name === undefined) return;
      database ??= new Database(join(dataFolder, name), { readonly: true });
      const position = Number(database.prepare('SELECT position FROM progress').pluck().get() ?? 0);
      if (position === 0) return;
      last = { atMs: performance.now(), position };
      first ??= last;
    } catch {
      // The file has been created and its tables have not.
    }
  };
  const timer = setInterval(sample, sampleIntervalMs);
  return {
    stop() {
      clearInterval(timer);
      sample();
      database?.close();
    },
    result() {
      const indexed = last?.position ?? 0;
      if (first === undefined || last === undefined || last === first) {
        return { indexed, indexedPerSecond: null };
      }
      const seconds = (last.atMs - first.atMs) / 1_000;
      return { indexed, indexedPerSecond: (last.position - first.position) / seconds };
    },
  };
}

/** More warm-up, in both states: until the first texts are asked for, and what makes them is loaded. */
const firstTextsMs = 3_000;

/** Intake with summaries off and on in turn; the index is on in both. The model is asked of everything that comes. */
export async function measureSummarising(setting: BenchSetting): Promise<MeasuredPart> {
  const warmUpMs = setting.warmUpMs + firstTextsMs;
  const busy = { ...setting, templateCount: templateCounts.distinct, warmUpMs };
  const port = await startService('model', setting.cleanup);
  const environments = {
    off: { EARSHOT_SUMMARY: 'off' },
    on: {
      EARSHOT_SUMMARY: 'each',
      EARSHOT_INFERENCE_URL: `http://127.0.0.1:${port}`,
      EARSHOT_INFERENCE_API_KEY: 'bench-key-of-no-service',
      EARSHOT_INFERENCE_MODEL: 'bench/model',
      // No limit that matters.
      EARSHOT_SUMMARY_REQUESTS_PER_HOUR: '100000000',
      EARSHOT_SUMMARY_REQUESTS_PER_DAY: '100000000',
      EARSHOT_SUMMARY_TOKENS_PER_DAY: '999999999',
    },
  };
  const measured = await measureInTurn(setting, 'summaries', offAndOn, (state, dataFolder) =>
    measureCounted(busy, dataFolder, environments[state], {
      wanted: 'SELECT count(*) FROM summary_job',
      written: 'SELECT count(*) FROM summary_text',
    }),
  );
  const rounds = measured.map(({ off, on }) => ({
    off: off.figures,
    on: on.figures,
    ...on.counts,
  }));
  const ratio = speedRatio(rounds, 'on', 'off');
  const wanted = median(rounds.map((round) => round.wanted));
  const written = median(rounds.map((round) => round.written));
  const idle = rounds.filter((round) => round.wanted === 0 || round.written === 0).length;
  const text = [
    'Intake without summaries and with a text wanted of every product in turn, each with the index on',
    renderRounds('summaries', offAndOn, rounds),
    '',
    `requests/s, on / off: ${figure(ratio, 2)}`,
    `meanwhile:            ${figure(wanted)} texts were wanted, ${figure(written)} written`,
  ];
  return {
    ...{ runs: runsOf(rounds, offAndOn), text: [text.join('\n')] },
    figures: { rounds, speedRatio: ratio },
    targets: [target('requests/s, summaries on / off', ratio, { min: 0.95 })],
    // A model that was not at work makes the round worthless.
    faults:
      idle === 0 ? [] : [`no summary was made in ${idle} round(s) that were to be busy with it`],
  };
}

/** Measures earshot, and asks its database for some numbers when the load has ended. */
async function measureCounted<Name extends string>(
  setting: BenchSetting,
  dataFolder: string,
  environment: NodeJS.ProcessEnv,
  questions: Readonly<Record<Name, string>>,
): Promise<{ figures: RunFigures; counts: Record<Name, number> }> {
  let answers: [string, number][] = [];
  const loaded = () => {
    answers = readDatabase(databaseFile(dataFolder), (db) =>
      Object.entries<string>(questions).map(([name, sql]) => {
        return [name, Number(db.prepare(sql).pluck().get() ?? 0)];
      }),
    );
  };
  const figures = await measureServer(setting, 'earshot', dataFolder, { environment, loaded });
  return { figures, counts: Object.fromEntries(answers) as Record<Name, number> };
}

const sinkStates = ['none', 'hanging', 'taking'] as const;

/** Intake without a sink and with either of two in turn; the product index is on throughout. */
export async function measureHandingOver(setting: BenchSetting): Promise<MeasuredPart> {
  const port = await startService('hook', setting.cleanup);
  const paths = { hanging: 'hang', taking: 'take' };
  const measured = await measureInTurn(setting, 'sinks', sinkStates, (state, dataFolder) => {
    // The receiver works in its data folder, and finds the file there. An attempt may last as long as the load.
    if (state !== 'none') {
      const webhook = `http://127.0.0.1:${port}/${paths[state]}`;
      const sinks = { sink: { webhook, from: 'start', timeoutSeconds: 3_600 } };
      const text = `export default ${JSON.stringify({ sinks })};\n`;
      writeFileSync(join(dataFolder, 'earshot.config.ts'), text);
    }
    return measureCounted(
      setting,
      dataFolder,
      {},
      {
        waiting: 'SELECT count(*) FROM sink_item',
        read: "SELECT position FROM reader_cursor WHERE reader = 'sink:sink'",
      },
    );
  });
  const rounds = measured.map(({ none, hanging, taking }) => ({
    none: none.figures,
    hanging: hanging.figures,
    taking: taking.figures,
    waiting: hanging.counts.waiting,
    taken: Math.max(0, taking.counts.read - taking.counts.waiting),
  }));
  const hangingToNone = speedRatios(rounds, 'hanging', 'none');
  const takingToNone = speedRatios(rounds, 'taking', 'none');
  // Warm-up included.
  const loadSeconds = (setting.warmUpMs + setting.measureMs) / 1_000;
  const takenPerSecond = spreadOf(rounds.map(({ taken }) => taken / loadSeconds));
  const waiting = median(rounds.map((round) => round.waiting));
  const idle = rounds.filter((round) => round.waiting === 0 || round.taken === 0).length;
  const text = [
    'Intake without a sink, beside a webhook that never answers, and beside one that takes all at once, in turn',
    renderRounds('sink', sinkStates, rounds),
    '',
    `requests/s, hanging / none: ${renderSpread(hangingToNone, 2)} (${figure(waiting)} waited for it when the load ended)`,
    `requests/s, taking / none:  ${renderSpread(takingToNone, 2)}`,
    `taken/s meanwhile:          ${renderSpread(takenPerSecond)}`,
  ];
  // One that takes everything has its share of the machine; one that hangs must have none.
  const hanging = hangingToNone?.median ?? null;
  return {
    ...{ runs: runsOf(rounds, sinkStates), text: [text.join('\n')] },
    figures: { rounds, hangingToNone, takingToNone, takenPerSecond },
    targets: [target('requests/s, a sink that hangs / none', hanging, { min: 0.95 })],
    // A sink that was not at work makes the round worthless.
    faults: idle === 0 ? [] : [`nothing was handed over in ${idle} round(s)`],
  };
}

function renderSpread(spread: Spread | null, decimals = 0): string {
  if (spread === null) return figure(null);
  const { median: middle, lowerQuartile, upperQuartile } = spread;
  const [lower, upper] = [figure(lowerQuartile, decimals), figure(upperQuartile, decimals)];
  return `${figure(middle, decimals)}, quartiles ${lower} and ${upper}`;
}
