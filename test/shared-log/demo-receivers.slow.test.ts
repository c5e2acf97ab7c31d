import { describe, expect, it } from 'vitest';
import { findPostgres } from '../../src/cli/demo/postgres-server.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { hasPostgres } from './shared-log-context.ts';

it('finds no server where none is installed', () => {
  expect(findPostgres(temporaryDirectory())).toBeNull();
});

describe.runIf(hasPostgres)('the demo with several receivers', () => {
  it('kills one of three while products arrive, and misses nothing', async () => {
    const argv = ['demo', '--receivers', '3', '--products', '300'];
    const { ended } = spawnCommand(argv, { env: {}, cwd: temporaryDirectory() });
    const { code, out, err } = await ended;
    expect(err).toBe('');
    expect(code).toBe(0);
    expect(out).toMatch(/Killed receiver-3 .*\n.*Started receiver-3 again/);
    const counts = { published: 300, delivered: 300, stored: 300, missing: 0 };
    expect(JSON.parse(out.trim().split('\n').at(-1) ?? '')).toEqual({
      ...counts,
      ...{ receivers: 3, killed: 1 },
    });
  });
});
