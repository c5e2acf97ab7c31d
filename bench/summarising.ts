/** What the making of summaries costs the intake: every product asked of a model while notifications come in. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { type InTurn, measureInTurn, offAndOn, onToOff } from './in-turn.ts';
import { type BenchSetting, measureServer, type RunFigures } from './measure.ts';
import type { Progress } from './progress.ts';
import { databaseFile, freePort } from './servers.ts';

/** Intake with summaries on and off in turn; the product index is on in both. */
export interface Summarising {
  readonly rounds: readonly SummarisingRound[];
  /** Requests per second, on to off: median of the rounds' ratios. */
  readonly speedRatio: number | null;
}

export interface SummarisingRound extends InTurn<RunFigures> {
  /** Products that a text was wanted of when the load ended, and texts that were written. */
  readonly wanted: number;
  readonly written: number;
}

/** As for the index: nothing is alike. */
const templateCount = 4_096;
/** More warm-up, in both states: until the first texts are asked for, and what makes them is loaded. */
const firstTextsMs = 3_000;

/** Also starts the model. */
export async function runSummarising(
  setting: BenchSetting,
  roundCount: number,
  progress: Progress,
): Promise<Summarising> {
  const warmUpMs = setting.warmUpMs + firstTextsMs;
  const busy = { ...setting, templateCount, warmUpMs };
  const environments = { off: { EARSHOT_SUMMARY: 'off' }, on: await busyEnvironment(setting) };
  const means = { setting, roundCount, progress };
  const measured = await measureInTurn(means, 'summaries', offAndOn, async (state, dataFolder) => {
    let counts = { wanted: 0, written: 0 };
    const figures = await measureServer(busy, 'earshot', dataFolder, {
      environment: environments[state],
      loaded: () => {
        counts = countSummaries(dataFolder);
      },
    });
    return { figures, counts };
  });
  const rounds = measured.map(({ off, on }) => ({
    off: off.figures,
    on: on.figures,
    ...on.counts,
  }));
  return { rounds, speedRatio: onToOff(rounds) };
}

/** Starts a model, and asks it of everything that comes, without a limit that matters. */
async function busyEnvironment({ cleanup }: BenchSetting): Promise<NodeJS.ProcessEnv> {
  const port = await freePort();
  const child = spawn(process.execPath, [join(import.meta.dirname, 'model-server.ts')], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: 'ignore',
  });
  cleanup.ownProcess(child);
  return {
    EARSHOT_SUMMARY: 'each',
    EARSHOT_INFERENCE_URL: `http://127.0.0.1:${port}`,
    EARSHOT_INFERENCE_API_KEY: 'bench-key-of-no-service',
    EARSHOT_INFERENCE_MODEL: 'bench/model',
    EARSHOT_SUMMARY_REQUESTS_PER_HOUR: '100000000',
    EARSHOT_SUMMARY_REQUESTS_PER_DAY: '100000000',
    EARSHOT_SUMMARY_TOKENS_PER_DAY: '999999999',
  };
}

function countSummaries(dataFolder: string): { wanted: number; written: number } {
  const file = databaseFile('earshot', dataFolder);
  if (file === undefined) throw new Error('earshot has no database file');
  const database = new Database(file, { readonly: true });
  try {
    const count = (table: string) =>
      Number(database.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
    return { wanted: count('summary_job'), written: count('summary_text') };
  } finally {
    database.close();
  }
}

/** What makes a round worthless: a model that was not at work. */
export function summarisingFaults({ rounds }: Summarising): string[] {
  const idle = rounds.filter(({ wanted, written }) => wanted === 0 || written === 0).length;
  return idle === 0 ? [] : [`no summary was made in ${idle} round(s) that were to be busy with it`];
}
