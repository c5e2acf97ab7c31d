/** Runs checks in order, and skips those that cannot run after what has failed. */
import { type Check, type Finding, failedFinding } from '../../domain/finding.ts';

export interface Step {
  /** What its findings are mostly called, and what other steps name it by. */
  name: string;
  /** Steps that must have come through: no finding of theirs failed, and they were not skipped. */
  needs: readonly string[];
  run: Check;
}

/** Why a step did not come through: the first of the chain that did not. */
interface Cause {
  name: string;
  failed: boolean;
}

/** Gives each finding as soon as it is known; ends early when the signal is aborted. Never throws. */
export async function* runSteps(
  steps: readonly Step[],
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const causes = new Map<string, Cause>();
  for (const step of steps) {
    if (signal.aborted) return;
    const { name } = step;
    const cause = step.needs.map((need) => causes.get(need)).find((one) => one !== undefined);
    if (cause !== undefined) {
      causes.set(name, cause);
      yield skipped(name, cause);
      continue;
    }
    const findings = await run(step);
    const failed = findings.some(({ state }) => state === 'fail');
    const through = !failed && findings.every(({ state }) => state !== 'skipped');
    if (!through) causes.set(name, { name, failed });
    yield* findings;
  }
}

async function run({ name, run }: Step): Promise<Finding[]> {
  try {
    return await run();
  } catch (error) {
    return [failedFinding(name, error, 'Please report it.')];
  }
}

function skipped(check: string, { name, failed }: Cause): Finding {
  const message = `Not checked, as "${name}" ${failed ? 'failed' : 'was skipped'}.`;
  return { check, state: 'skipped', message };
}
