/** What the product index costs the intake, and how fast it follows while notifications come in. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { type InTurn, measureInTurn, offAndOn, onToOff } from './in-turn.ts';
import { type BenchSetting, measureServer, type RunFigures } from './measure.ts';
import { median } from './median.ts';
import type { Progress } from './progress.ts';

/** Intake with the index on and off in turn. */
export interface Indexing {
  readonly rounds: readonly IndexingRound[];
  /** Requests per second, on to off: median of the rounds' ratios. */
  readonly speedRatio: number | null;
  /** Notifications indexed per second of load: the median. */
  readonly indexedPerSecond: number | null;
}

export interface IndexingRound extends InTurn<RunFigures> {
  /** Null when the index was not seen to move. */
  readonly indexedPerSecond: number | null;
  /** How many notifications the index was behind when the load ended. */
  readonly behind: number;
}

/** Different bodies: each with a name, a footprint and attributes of its own, so that nothing is alike. */
const templateCount = 4_096;

export async function runIndexing(
  setting: BenchSetting,
  roundCount: number,
  progress: Progress,
): Promise<Indexing> {
  const means = { setting, roundCount, progress };
  const measured = await measureInTurn(means, 'index', offAndOn, async (state, dataFolder) => {
    const sampler = sampleIndex(dataFolder);
    const figures = await measureServer({ ...setting, templateCount }, 'earshot', dataFolder, {
      environment: { EARSHOT_INDEX: state },
      loaded: () => sampler.stop(),
    });
    return { figures, ...sampler.result() };
  });
  const rounds = measured.map(({ off, on }) => {
    const { figures, indexed, indexedPerSecond } = on;
    const behind = Math.max(0, figures.answered - indexed);
    return { off: off.figures, on: figures, indexedPerSecond, behind };
  });
  return {
    rounds,
    speedRatio: onToOff(rounds),
    indexedPerSecond: median(rounds.map((round) => round.indexedPerSecond)),
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
      database ??= openIndex(dataFolder);
      const position = Number(
        database?.prepare('SELECT position FROM progress').pluck().get() ?? 0,
      );
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

function openIndex(dataFolder: string): Database.Database | undefined {
  const name = readdirSync(dataFolder).find((file) => /^products-\d+\.db$/.test(file));
  return name === undefined ? undefined : new Database(join(dataFolder, name), { readonly: true });
}
