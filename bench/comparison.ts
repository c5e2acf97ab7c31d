/** The three servers in turn, several rounds, and the ratios between them. */
import { type BenchSetting, measureServer, type RunFigures } from './measure.ts';
import { median } from './median.ts';
import type { Progress } from './progress.ts';
import { type ServerName, serverNames } from './servers.ts';

/** Ratios are formed within a round, where the machine was in the same mood, then the median taken. */
export interface Comparison {
  readonly rounds: readonly Readonly<Record<ServerName, RunFigures>>[];
  /** Requests per second. */
  readonly earshotToTwentyLine: number | null;
  readonly earshotToBare: number | null;
  /** 99th percentile of latency. */
  readonly p99ToTwentyLine: number | null;
}

/** Measures every server on an empty data folder once per round. */
export async function runComparison(
  setting: BenchSetting,
  roundCount: number,
  progress: Progress,
): Promise<Comparison> {
  const rounds: Record<ServerName, RunFigures>[] = [];
  for (let round = 1; round <= roundCount; round += 1) {
    const measure = async (server: ServerName) => {
      progress.show(`comparison, round ${round} of ${roundCount}: ${server}`);
      const dataFolder = setting.cleanup.temporaryFolder(setting.parentFolder);
      const figures = await measureServer(setting, server, dataFolder);
      setting.cleanup.removeFolder(dataFolder);
      return figures;
    };
    rounds.push({
      bare: await measure('bare'),
      'twenty-line': await measure('twenty-line'),
      earshot: await measure('earshot'),
    });
  }
  const ratio = (figure: (run: RunFigures) => number, base: ServerName) =>
    median(rounds.map((round) => figure(round.earshot) / figure(round[base])));
  return {
    rounds,
    earshotToTwentyLine: ratio((run) => run.requestsPerSecond, 'twenty-line'),
    earshotToBare: ratio((run) => run.requestsPerSecond, 'bare'),
    p99ToTwentyLine: ratio((run) => run.p99Ms, 'twenty-line'),
  };
}

/** All runs of a comparison, server by server. */
export function runsByServer(comparison: Comparison): Record<ServerName, RunFigures[]> {
  const runs: Record<ServerName, RunFigures[]> = { bare: [], 'twenty-line': [], earshot: [] };
  for (const round of comparison.rounds) {
    for (const name of serverNames) runs[name].push(round[name]);
  }
  return runs;
}
