import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// Shared cache of compiled code: without it, each process compiles the whole program again.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/compiled');

/** Tests of pure functions: they leave no sockets, files or threads for the next test file. */
const pure = ['test/domain/**/*.test.ts', 'test/filter/**/*.test.ts'];
/** Tests that take about a minute or more: kill storms, simulated months, certificates under load. */
const slow = 'test/**/*.slow.test.ts';

/** Begins with tests of whole programs: these files are short, but take longest, and would otherwise be last. */
class ProgramsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isProgram = ({ moduleId }: TestSpecification) =>
      /\/test\/(attack|deploy|e2e)\//.test(moduleId);
    const sorted = await super.sort(files);
    return [...sorted.filter(isProgram), ...sorted.filter((file) => !isProgram(file))];
  }
}

const project = (name: string, include: string[], exclude: string[], isolate = true) => ({
  extends: true as const,
  test: { name, include, exclude, isolate },
});

export default defineConfig({
  test: {
    // Each file is a process, so that no state leaks; pure functions need no isolation.
    pool: 'forks',
    sequence: { sequencer: ProgramsFirst },
    projects: [
      project('pure', pure, [slow], false),
      project('parts', ['test/**/*.test.ts'], [slow, ...pure]),
      project('slow', [slow], []),
    ],
    // Many tests mostly wait, so that four workers are faster on two cores.
    maxWorkers: 4,
    // Generous for a busy machine; a condition that holds is detected at once anyway.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    // The speed of CI machines varies: tests that fail by a time limit run once more there.
    retry: process.env.CI === 'true' ? { count: 1, condition: /timed out|to be less than/ } : 0,
    dangerouslyIgnoreUnhandledErrors: false,
  },
});
