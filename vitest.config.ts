import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Where processes keep their compiled code: without it, each compiles the whole program anew.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/compiled');

/** Functions alone: no sockets, files or threads that a file of tests could leave behind for the next. */
const pure = ['test/domain/**/*.test.ts', 'test/filter/**/*.test.ts'];
/** What needs much of a minute, or more: kill storms, simulated months, certificates under load (`npm run test:slow`). */
const slow = 'test/**/*.slow.test.ts';

const project = (name: string, include: string[], exclude: string[], isolate = true) => ({
  extends: true as const,
  test: { name, include, exclude, isolate },
});

export default defineConfig({
  test: {
    // A file is one process, so that nothing leaks from one to the next; functions alone need none of their own.
    pool: 'forks',
    projects: [
      project('pure', pure, [slow], false),
      project('parts', ['test/**/*.test.ts'], [slow, ...pure]),
      project('slow', [slow], []),
    ],
    // Many files wait for others most of their time, so that one more than two cores have work for helps.
    maxWorkers: 3,
    // All of these are short for a machine that others use, too; a condition that holds is seen at once anyway.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    // Others decide how fast a machine of CI is: what failed for its time alone is tried once more there, and named.
    retry: process.env.CI === 'true' ? { count: 1, condition: /timed out|to be less than/ } : 0,
    dangerouslyIgnoreUnhandledErrors: false,
  },
});
