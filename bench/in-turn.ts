/** Measures intake in several states of earshot in turn, such as a part off and on: what that part costs. */
import type { BenchSetting, RunFigures } from './measure.ts';
import { type Spread, spreadOf } from './median.ts';
import type { Progress } from './progress.ts';

export const offAndOn = ['off', 'on'] as const;

/** What each of both states gave in one round. */
export interface InTurn<Measured> {
  readonly off: Measured;
  readonly on: Measured;
}

/**
 * Measures all states in each round, each on an empty data folder; each round begins with another one of them, and
 * goes on in their order.
 */
export async function measureInTurn<State extends string, Measured>(
  { setting, roundCount, progress }: InTurnMeans,
  part: string,
  states: readonly State[],
  measure: (state: State, dataFolder: string) => Promise<Measured>,
): Promise<Record<State, Measured>[]> {
  const rounds: Record<State, Measured>[] = [];
  for (let round = 1; round <= roundCount; round += 1) {
    const first = (round - 1) % states.length;
    const measured: Partial<Record<State, Measured>> = {};
    for (const state of [...states.slice(first), ...states.slice(0, first)]) {
      progress.show(`${part}, round ${round} of ${roundCount}: ${state}`);
      const dataFolder = setting.cleanup.temporaryFolder(setting.parentFolder);
      measured[state] = await measure(state, dataFolder);
      setting.cleanup.removeFolder(dataFolder);
    }
    rounds.push(measured as Record<State, Measured>);
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
  return speedRatios(rounds, ({ on, off }) => [on, off])?.median ?? null;
}

/** Requests per second in one state to those in another: of the rounds' ratios. */
export function speedRatios<Round>(
  rounds: readonly Round[],
  pick: (round: Round) => readonly [state: RunFigures, base: RunFigures],
): Spread | null {
  return spreadOf(
    rounds.map((round) => {
      const [state, base] = pick(round);
      return state.requestsPerSecond / base.requestsPerSecond;
    }),
  );
}
