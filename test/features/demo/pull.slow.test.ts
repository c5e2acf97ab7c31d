/** `earshot demo --pull`: the real program reads the queues of its sandbox. */
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { spawnCommand } from '../../helpers/spawned-command.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

/** Runs the demo to its end, in a folder for its files. */
async function demo(...flags: string[]) {
  const cwd = temporaryDirectory();
  const argv = ['demo', '--pull', '--once', ...flags];
  const { code, out, err } = await spawnCommand(argv, { env: { TMPDIR: cwd }, cwd }).ended;
  const lines = out.trimEnd().split('\n');
  return { code, err, count: JSON.parse(lines.at(-1) ?? ''), left: readdirSync(cwd) };
}

describe('earshot demo --pull --once', { timeout: 60_000 }, () => {
  it('stores each of 30 products once, and leaves no files', async () => {
    const { code, err, count, left } = await demo('--products', '30');
    expect({ code, err, left }).toEqual({ code: 0, err: '', left: [] });
    const all = { published: 30, delivered: 30, stored: 30 };
    expect(count).toEqual({ ...all, duplicates: 0, quarantined: 0, summaries: 30 });
  });

  it('loses no notification despite faults of the queue', async () => {
    const { code, err, count } = await demo('--products', '200', '--faults');
    expect(code, err).toBe(0);
    const all = { published: 200, delivered: 200, stored: 200 };
    expect(count).toMatchObject({ ...all, quarantined: 0 });
    // Pages that were read twice, or acknowledged without an answer.
    expect(count.duplicates).toBeGreaterThan(0);
    expect(err).not.toContain('lost');
  });
});
