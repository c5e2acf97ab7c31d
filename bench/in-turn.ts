/** Measures intake with a part of earshot off and on in turn: what that part costs. */
import type { BenchSetting, RunFigures } from './measure.ts';
import { median } from './median.ts';
import type { Progress } from './progress.ts';

export type PartState = 'off' | 'on';

/** What each of both states gave in one round. */
export interface InTurn<Measured> {
  readonly off: Measured;
  readonly on: Measured;
}

/**
 * Measures both states in each round, each on an empty data folder; which of the two comes first changes from
 * round to round.
 */
export async function measureInTurn<Measured>(
  { setting, roundCount, progress }: InTurnMeans,
  part: string,
  measure: (state: PartState, dataFolder: string) => Promise<Measured>,
): Promise<InTurn<Measured>[]> {
  const rounds: InTurn<Measured>[] = [];
  for (let round = 1; round <= roundCount; round += 1) {
    const measureState = async (state: PartState) => {
      progress.show(`${part}, round ${round} of ${roundCount}: ${state}`);
      const dataFolder = setting.cleanup.temporaryFolder(setting.parentFolder);
      const measured = await measure(state, dataFolder);
      setting.cleanup.removeFolder(dataFolder);
      return measured;
    };
    const offFirst = round % 2 === 1 ? await measureState('off') : undefined;
    const on = await measureState('on');
    rounds.push({ off: offFirst ?? (await measureState('off')), on });
  }
  return rounds;
}

export interface InTurnMeans {
  readonly setting: Pick<BenchSetting, 'cleanup' | 'parentFolder'>;
  readonly roundCount: number;
  readonly progress: Progress;
}

/** Requests per second, on to off: median of the rounds' ratios. */
export function onToOff(rounds: readonly InTurn<RunFigures>[]): number | null {
  return median(rounds.map(({ on, off }) => on.requestsPerSecond / off.requestsPerSecond));
}
