import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { itIfComplete } from '../helpers/thorough.ts';

const root = join(import.meta.dirname, '../..');
const program = join(root, 'scripts/earshot.js');
const records = join(root, '../shared/fixtures/products.jsonl');

function demo(...args: string[]) {
  const TMPDIR = temporaryDirectory();
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [program, 'demo', '--once', ...args],
    { encoding: 'utf8', timeout: 110_000, env: { ...process.env, TMPDIR } },
  );
  const lastLine = stdout.trimEnd().split('\n').at(-1) ?? '';
  return { status, stdout, stderr, left: readdirSync(TMPDIR), count: JSON.parse(lastLine) };
}

/** Runs a script in bash, with the program as `earshot` and without settings of earshot. */
async function inShell(script: string): Promise<string> {
  const earshot = `earshot() { "${process.execPath}" "${program}" "$@"; }`;
  const options = { cwd: temporaryDirectory(), env: { PATH: process.env.PATH ?? '' } };
  const words = ['--norc', '-ec', `${earshot}\n${script}`];
  return (await promisify(execFile)('bash', words, options)).stdout;
}

/** Starts a demo that runs until a signal; resolves when three notifications have arrived. */
async function startDemo(...args: string[]) {
  const TMPDIR = temporaryDirectory();
  const { out, err, interrupt, ended } = spawnCommand(['demo', ...args], {
    ...{ env: { TMPDIR }, cwd: root },
  });
  const arrived = () => out().match(/^ +\d+ {2}created /gm)?.length ?? 0;
  await expect.poll(arrived, { timeout: 60_000 }).toBeGreaterThanOrEqual(3);
  /** Ends it as Ctrl-C does. */
  const end = async () => {
    interrupt();
    expect(await ended).toMatchObject({ code: 0 });
    expect(readdirSync(TMPDIR)).toEqual([]);
  };
  return { out, err, end };
}

describe('the demo', { timeout: 120_000 }, () => {
  it('stores each of 200 products once, and leaves no files', () => {
    const { status, stderr, left, count } = demo('--products', '200');
    expect({ status, stderr, left }).toEqual({ status: 0, stderr: '', left: [] });
    const all = { published: 200, delivered: 200, stored: 200 };
    expect(count).toEqual({ ...all, duplicates: 0, quarantined: 0, summaries: 200 });
  });

  it('stores every delivered notification once despite faults, and recovers each loss', () => {
    const { status, stdout, stderr, count } = demo('--products', '300', '--faults');
    expect(status).toBe(0);
    const lost = 300 - count.delivered;
    expect(lost).toBeGreaterThan(0);
    const { delivered } = count;
    const counts = { published: 300, stored: delivered, recovered: lost, summaries: delivered };
    expect(count).toMatchObject({ ...counts, quarantined: 0 });
    expect(count.duplicates).toBeGreaterThan(0);
    expect(stderr.match(/^ {2}created /gm)).toHaveLength(lost);
    const row = new RegExp(`^demo +created +300 +${300 - lost} +0 +${lost} +0$`, 'm');
    expect(stdout).toMatch(row);
  });

  it('stores all 132 real records', (context) => {
    if (!existsSync(records)) return context.skip('the folder with real records is missing');
    const { status, count } = demo('--records', records);
    expect(status).toBe(0);
    const all = { published: 132, delivered: 132, stored: 132 };
    expect(count).toMatchObject({ ...all, quarantined: 0, summaries: 132 });
  });

  itIfComplete('prints the folder in which every command and page shows its data', async () => {
    const { out, end } = await startDemo('--products', '800');
    const [line = ''] = /cd \S+/.exec(out()) ?? [];
    const [, page = ''] = /^ {2}web page {2}(http:\S+\/) /m.exec(out()) ?? [];
    const live = await (await fetch(new URL('/live', page))).text();
    expect(live).toMatch(/>S2\w_MSI/);
    const shown = await inShell(
      `${line}; earshot admin health; earshot subscriptions list; echo ROWS; earshot query --json`,
    );
    const [before = '', rows = ''] = shown.split('ROWS\n');
    expect(before).toMatch(/demo-deletions.*running|running.*demo-deletions/);
    expect(JSON.parse(rows).length).toBeGreaterThanOrEqual(3);
    await end();
  });
});
