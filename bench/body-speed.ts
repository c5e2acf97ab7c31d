/** What it costs the intake to compress bodies. */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { measureInTurn, speedRatios } from './in-turn.ts';
import { type BenchSetting, measureServer, type RunFigures } from './measure.ts';
import type { Spread } from './median.ts';
import type { Progress } from './progress.ts';
import { databaseFile } from './servers.ts';

/** The same program in both, with the product index on. */
export const bodyStates = ['as they came', 'compressed'] as const;
export type BodyState = (typeof bodyStates)[number];

export interface BodySpeed {
  readonly rounds: readonly Readonly<Record<BodyState, RunFigures>>[];
  /** Requests per second with compression to those without: of the rounds' ratios. */
  readonly ratio: Spread | null;
}

/** Different bodies: there are as many packs of them as anybody would receive in a minute. */
const templateCount = 4_096;

export async function runBodySpeed(
  setting: BenchSetting,
  roundCount: number,
  progress: Progress,
): Promise<BodySpeed> {
  const means = { setting, roundCount, progress };
  const rounds = await measureInTurn(means, 'speed', bodyStates, async (state, dataFolder) => {
    const figures = await measureServer({ ...setting, templateCount }, 'earshot', dataFolder, {
      environment: state === 'compressed' ? {} : { NODE_OPTIONS: `--import ${uncompressed}` },
    });
    requireState(state, dataFolder);
    return figures;
  });
  const ratio = speedRatios(rounds, (round) => [round.compressed, round['as they came']]);
  return { rounds, ratio };
}

const uncompressed = join(import.meta.dirname, 'uncompressed.ts');

/** Throws where the switch did not do what it should: then the comparison is of nothing. */
function requireState(state: BodyState, dataFolder: string): void {
  const database = new Database(databaseFile('earshot', dataFolder), { readonly: true });
  try {
    const encodings = database.prepare('SELECT DISTINCT encoding FROM body').pluck().all();
    const isAsTheyCame = encodings.join() === 'identity';
    if (isAsTheyCame !== (state === 'as they came')) {
      throw new Error(`bodies were to be kept ${state}, and are ${encodings.join()}`);
    }
  } finally {
    database.close();
  }
}
