import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { promises } from './test/promises.ts';

// Shared cache of compiled code: without it, each process compiles the whole program again.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/compiled');

/** Tests of pure functions, without threads. */
const pure = ['test/core/terms/**/*.test.ts', 'test/filter/**/*.test.ts'];
/** Tests that take more than ten seconds: kill storms, simulated months, certificates under load. */
const slow = 'test/**/*.slow.test.ts';

/**
 * Alternates tests of whole programs with others: the former wait, and their files are short, so that the longest would
 * be last.
 */
class ProgramsBetween extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isProgram = ({ moduleId }: TestSpecification) =>
      /\/test\/(attack|deploy|e2e)\//.test(moduleId);
    const sorted = await super.sort(files);
    const programs = sorted.filter(isProgram);
    const others = sorted.filter((file) => !isProgram(file));
    const mixed = programs.flatMap((file, i) => [file, ...others.slice(i, i + 1)]);
    return [...mixed, ...others.slice(programs.length)];
  }
}

/** Limits for tests of several programs, on a machine that runs others meanwhile. */
const patient = { testTimeout: 240_000, hookTimeout: 120_000 };

const project = (name: string, include: string[], exclude: string[], more = {}) => ({
  extends: true as const,
  test: { name, include, exclude, ...more },
});

export default defineConfig({
  test: {
    // Most files share processes: they close what they open. Each file of whole programs is a process.
    pool: 'forks',
    sequence: { sequencer: ProgramsBetween },
    projects: [
      project('pure', pure, [slow], { isolate: false }),
      project('parts', ['test/**/*.test.ts'], [slow, ...pure], {
        isolate: false,
        setupFiles: ['test/helpers/threads-in-process.ts'],
      }),
      project('promises', [...promises], [], patient),
      project('slow', [slow], [...promises], patient),
    ],
    // Many tests mostly wait, so that four workers are faster on two cores.
    maxWorkers: 4,
    // Generous for a busy machine; a condition that holds is detected at once anyway.
    testTimeout: process.env.TEST_THOROUGH === '1' ? 600_000 : 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    setupFiles: ['test/helpers/patient-waits.ts'],
    // The speed of CI machines varies: tests that fail by a time limit run once more there.
    retry: process.env.CI === 'true' ? { count: 1, condition: /timed out|to be less than/ } : 0,
    dangerouslyIgnoreUnhandledErrors: false,
  },
});
