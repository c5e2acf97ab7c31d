/**
 * Parts of the intake benchmark with alternating states: the three servers, and earshot without and with product
 * index, summaries and sinks.
 */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
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
      target('requests/s, earshot / twenty-line', earshotToTwentyLine, { min: 3.5 }),
      target('requests/s, earshot / bare', earshotToBare, { min: 0.5 }),
      target('p99, earshot / twenty-line', p99ToTwentyLine, { max: 0.5 }),
      target('earshot peak memory, MB', inMegabytes(peak), { max: peakMegabytes }),
    ],
  };
}

/** A rate at which the index follows without a pause (index-maintenance.ts). */
const steadyPerSecond = 2_900;
/** Burst after which the index must have caught up in time. */
const burst = { notifications: 100_000, caughtUpSeconds: 30 };

/**
 * Measures intake at full speed with the product index off and on in turn, how soon the index catches up afterwards,
 * and its lag at a steady rate.
 */
export async function measureIndexing(setting: BenchSetting): Promise<MeasuredPart> {
  const distinct = { ...setting, templateCount: templateCounts.distinct };
  const rounds = await measureInTurn(distinct, 'index', indexStates, async (state, dataFolder) => {
    const load = state === 'steady' ? { ...distinct, ratePerSecond: steadyPerSecond } : distinct;
    let lag: Lag = { notifications: 0, seconds: 0 };
    const figures = await measureServer(load, 'earshot', dataFolder, {
      environment: { EARSHOT_INDEX: state === 'off' ? 'off' : 'on' },
      loaded: async () => {
        if (state !== 'off') lag = await watchCatchUp(dataFolder);
      },
    });
    return { ...figures, lag };
  });
  const ratio = speedRatio(rounds, 'on', 'off');
  const lagOf = (state: 'on' | 'steady') =>
    median(rounds.map((round) => round[state].lag.notifications));
  const perSecond = median(
    rounds.map(({ on: { lag } }) => (lag.seconds > 0 ? lag.notifications / lag.seconds : null)),
  );
  const caughtUpSeconds = perSecond && burst.notifications / perSecond;
  const lags = { full: lagOf('on'), steady: lagOf('steady') };
  const text = [
    'Intake at full speed with the product index off and on, and at a steady rate, each notification of a different product',
    renderRounds('index', indexStates, rounds),
    '',
    `requests/s, on / off:     ${figure(ratio, 2)}`,
    `lag after the full speed: ${figure(lags.full)} notifications, then ${figure(perSecond)} indexed/s`,
    `lag at ${steadyPerSecond}/s:            ${figure(lags.steady)} notifications`,
  ];
  return {
    ...{ runs: runsOf(rounds, indexStates), faults: [], text: [text.join('\n')] },
    figures: { rounds, speedRatio: ratio, indexedPerSecond: perSecond, caughtUpSeconds, lags },
    targets: [
      target('requests/s, index on / off', ratio, { min: 0.95 }),
      target(`seconds to index ${burst.notifications} after a burst`, caughtUpSeconds, {
        max: burst.caughtUpSeconds,
      }),
      target(`lag of the index at ${steadyPerSecond}/s`, lags.steady, { max: steadyPerSecond }),
    ],
  };
}

const indexStates = ['off', 'on', 'steady'] as const;

/** Lag of the index, and the time until it has caught up. */
interface Lag {
  notifications: number;
  seconds: number;
}

const catchUpMaxMs = 300_000;

/** Waits until the index has the last position of the log. Throws after a time limit. */
async function watchCatchUp(dataFolder: string): Promise<Lag> {
  const last = readDatabase(databaseFile(dataFolder), (db) =>
    Number(db.prepare('SELECT max(position) FROM notification').pluck().get()),
  );
  const startMs = performance.now();
  const notifications = last - indexedPosition(dataFolder);
  while (indexedPosition(dataFolder) < last) {
    if (performance.now() - startMs > catchUpMaxMs) throw new Error('the index did not catch up');
    await delay(50);
  }
  return { notifications, seconds: (performance.now() - startMs) / 1_000 };
}

/** Returns 0 before the index exists. */
function indexedPosition(dataFolder: string): number {
  const name = readdirSync(dataFolder).find((file) => /^products-\d+\.db$/.test(file));
  if (name === undefined) return 0;
  const sql = 'SELECT position FROM progress';
  return readDatabase(join(dataFolder, name), (db) => Number(db.prepare(sql).pluck().get()));
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
      EARSHOT_SUMMARY_REQUESTS_PER_DAY: '100000000',
      EARSHOT_SUMMARY_TOKENS_PER_DAY: '999999999',
    },
  };
  const measured = await measureInTurn(setting, 'summaries', offAndOn, (state, dataFolder) =>
    measureCounted(busy, dataFolder, environments[state], {
      requested: 'SELECT count(*) FROM summary',
      written: 'SELECT count(*) FROM summary WHERE model IS NOT NULL',
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
