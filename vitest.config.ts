import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Where processes keep their compiled code: without it, each compiles the whole program anew.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/compiled');

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Every test owns its sockets, files and threads; a file is one process, so that nothing leaks.
    pool: 'forks',
    // Many files wait for others most of their time, so that one more than two cores have work for helps.
    maxWorkers: 3,
    testTimeout: 20_000,
    // The usual second is short for a busy machine; a condition that holds is seen at once anyway.
    expect: { poll: { timeout: 15_000 } },
    hookTimeout: 20_000,
    dangerouslyIgnoreUnhandledErrors: false,
  },
});
