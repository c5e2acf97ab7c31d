/** `earshot demo --pull`: the real program reads the queues of its sandbox. */
import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { spawnCommand } from '../../helpers/spawned-command.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

it('earshot demo --pull stores each product once despite faults of the queue, and leaves no files', async () => {
  const cwd = temporaryDirectory();
  const argv = ['demo', '--pull', '--once', '--products', '200', '--faults'];
  const { code, out, err } = await spawnCommand(argv, { env: { TMPDIR: cwd }, cwd }).ended;
  expect({ code, left: readdirSync(cwd) }, err).toEqual({ code: 0, left: [] });
  const count = JSON.parse(out.trimEnd().split('\n').at(-1) ?? '');
  const all = { published: 200, delivered: 200, stored: 200 };
  expect(count).toMatchObject({ ...all, quarantined: 0, summaries: 200 });
  // Pages that were read twice, or acknowledged without an answer.
  expect(count.duplicates).toBeGreaterThan(0);
  expect(err).not.toContain('lost');
}, 60_000);
