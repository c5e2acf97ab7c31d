/**
 * Parts of the intake benchmark with alternating states: the three servers, and earshot without and with product
 * index, summaries and sinks.
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

/** Maximum memory of earshot under any load. */
export const peakMegabytes = 300;

const offAndOn = ['off', 'on'] as const;

/** Result of one part of the benchmark. */
export interface MeasuredPart {
  /** Output of `--json`. */
  readonly figures: object;
  readonly runs: readonly RunFigures[];
  readonly targets: readonly TargetResult[];
  readonly faults: readonly string[];
  readonly text: readonly string[];
}

/** Maximum use of a core by the load generator; above this, it may limit the measured rate. */
const generatorCoresMax = 0.85;

/** Measures the three servers in turn. Ratios are medians of the ratios of each round. */
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
      ? `The load generator, a separate process, used at most ${figure(most, 2)} of a core and did not limit the rate.`
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

/** Measures intake with the product index off and on in turn, and the indexing rate during intake. */
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
  // `indexedPerSecond` is null if no progress was observed; `backlog` is that at the end of the load.
  const rounds = measured.map(({ off, on: { figures, indexed, indexedPerSecond } }) => {
    const backlog = Math.max(0, figures.answered - indexed);
    return { off: off.figures, on: figures, indexedPerSecond, backlog };
  });
  const ratio = speedRatio(rounds, 'on', 'off');
  const indexedPerSecond = median(rounds.map((round) => round.indexedPerSecond));
  const backlog = median(rounds.map((round) => round.backlog));
  const text = [
    'Intake with the product index off and on in turn, each notification of a different product',
    renderRounds('index', offAndOn, rounds),
    '',
    `requests/s, on / off: ${figure(ratio, 2)}`,
    `indexed/s:            ${figure(indexedPerSecond)} (backlog at the end of the load: ${figure(backlog)})`,
  ];
  return {
    ...{ runs: runsOf(rounds, offAndOn), faults: [], text: [text.join('\n')] },
    figures: { rounds, speedRatio: ratio, indexedPerSecond },
    targets: [
      target('requests/s, index on / off', ratio, { min: 0.8 }),
      target('notifications indexed/s during intake', indexedPerSecond, { min: 2_000 }),
    ],
  };
}

const sampleIntervalMs = 100;

/** Samples the position of the index from its first progress to the end of the load. */
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
      // The file exists, but its tables do not yet.
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

/** Additional warm-up in both states, until the first summaries are requested. */
const firstTextsMs = 3_000;

/** Measures intake with summaries of all products off and on in turn; the index is on in both. */
export async function measureSummaries(setting: BenchSetting): Promise<MeasuredPart> {
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
      // Effectively unlimited.
      EARSHOT_SUMMARY_REQUESTS_PER_HOUR: '100000000',
      EARSHOT_SUMMARY_REQUESTS_PER_DAY: '100000000',
      EARSHOT_SUMMARY_TOKENS_PER_DAY: '999999999',
    },
  };
  const measured = await measureInTurn(setting, 'summaries', offAndOn, (state, dataFolder) =>
    measureCounted(busy, dataFolder, environments[state], {
      requested: 'SELECT count(*) FROM summary_job',
      written: 'SELECT count(*) FROM summary_text',
    }),
  );
  const rounds = measured.map(({ off, on }) => ({
    off: off.figures,
    on: on.figures,
    ...on.counts,
  }));
  const ratio = speedRatio(rounds, 'on', 'off');
  const requested = median(rounds.map((round) => round.requested));
  const written = median(rounds.map((round) => round.written));
  const idle = rounds.filter((round) => round.requested === 0 || round.written === 0).length;
  const text = [
    'Intake without summaries and with a summary of every product in turn, each with the index on',
    renderRounds('summaries', offAndOn, rounds),
    '',
    `requests/s, on / off: ${figure(ratio, 2)}`,
    `summaries:            ${figure(requested)} requested, ${figure(written)} written`,
  ];
  return {
    ...{ runs: runsOf(rounds, offAndOn), text: [text.join('\n')] },
    figures: { rounds, speedRatio: ratio },
    targets: [target('requests/s, summaries on / off', ratio, { min: 0.95 })],
    // Without summaries, the round is invalid.
    faults: idle === 0 ? [] : [`no summary was written in ${idle} round(s)`],
  };
}

/** Measures earshot, and queries counts from its database when the load has ended. */
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

const sinkStates = ['none', 'hanging', 'accepting'] as const;

/** Measures intake without a sink and with each of two sinks in turn; the product index is on. */
export async function measureSinks(setting: BenchSetting): Promise<MeasuredPart> {
  const port = await startService('hook', setting.cleanup);
  const paths = { hanging: 'hang', accepting: 'accept' };
  const measured = await measureInTurn(setting, 'sinks', sinkStates, (state, dataFolder) => {
    // The receiver runs in its data folder and reads the file there. The timeout exceeds the duration of the load.
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
  const rounds = measured.map(({ none, hanging, accepting }) => ({
    none: none.figures,
    hanging: hanging.figures,
    accepting: accepting.figures,
    waiting: hanging.counts.waiting,
    acknowledged: Math.max(0, accepting.counts.read - accepting.counts.waiting),
  }));
  const hangingToNone = speedRatios(rounds, 'hanging', 'none');
  const acceptingToNone = speedRatios(rounds, 'accepting', 'none');
  // Includes the warm-up.
  const loadSeconds = (setting.warmUpMs + setting.measureMs) / 1_000;
  const acknowledgedPerSecond = spreadOf(
    rounds.map(({ acknowledged }) => acknowledged / loadSeconds),
  );
  const waiting = median(rounds.map((round) => round.waiting));
  const idle = rounds.filter((round) => round.waiting === 0 || round.acknowledged === 0).length;
  const text = [
    'Intake without a sink, with a webhook that never answers, and with one that accepts everything, in turn',
    renderRounds('sink', sinkStates, rounds),
    '',
    `requests/s, hanging / none:   ${renderSpread(hangingToNone, 2)} (queue at the end of the load: ${figure(waiting)})`,
    `requests/s, accepting / none: ${renderSpread(acceptingToNone, 2)}`,
    `acknowledged/s:               ${renderSpread(acknowledgedPerSecond)}`,
  ];
  // An accepting sink uses part of the machine; a hanging one must not.
  const hanging = hangingToNone?.median ?? null;
  return {
    ...{ runs: runsOf(rounds, sinkStates), text: [text.join('\n')] },
    figures: { rounds, hangingToNone, acceptingToNone, acknowledgedPerSecond },
    targets: [target('requests/s, a sink that hangs / none', hanging, { min: 0.95 })],
    // Without deliveries, the round is invalid.
    faults: idle === 0 ? [] : [`nothing was delivered to the sink in ${idle} round(s)`],
  };
}

function renderSpread(spread: Spread | null, decimals = 0): string {
  if (spread === null) return figure(null);
  const { median: middle, lowerQuartile, upperQuartile } = spread;
  const [lower, upper] = [figure(lowerQuartile, decimals), figure(upperQuartile, decimals)];
  return `${figure(middle, decimals)}, quartiles ${lower} and ${upper}`;
}
