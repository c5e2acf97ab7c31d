/** Runs the doctor's steps in order, and skips those whose prerequisites failed. */
import type { Step } from '../../core/doctor/steps.ts';
import { type Finding, failedFinding, finding } from '../../core/terms/evaluation.ts';

/** Yields each finding as soon as it is known. Ends early if the signal is aborted. Never throws. */
export async function* runSteps(
  steps: readonly Step[],
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  /** Steps that failed or were skipped, with the first cause. */
  const causes = new Map<string, string>();
  for (const { name, needs, run } of steps) {
    if (signal.aborted) return;
    const cause = needs.map((need) => causes.get(need)).find((one) => one !== undefined);
    if (cause !== undefined) {
      causes.set(name, cause);
      yield finding(name, 'unknown', `Not checked, because of "${cause}".`);
      continue;
    }
    // Also for a check that throws at once.
    const findings = await (async () => run())().catch((error: unknown) => [
      failedFinding(name, error, 'Please report it.'),
    ]);
    if (findings.some(({ level }) => level === 'critical' || level === 'unknown'))
      causes.set(name, name);
    yield* findings;
  }
}
