import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { itIfComplete } from '../helpers/thorough.ts';

const root = join(import.meta.dirname, '../..');
const program = join(root, 'scripts/earshot.js');
const records = join(root, '../shared/fixtures/products.jsonl');

function demo(...args: string[]) {
  const TMPDIR = temporaryDirectory();
  const command = [program, 'demo', '--once', ...args];
  const ran = spawnSync(process.execPath, command, {
    encoding: 'utf8',
    timeout: 110_000,
    env: { ...process.env, TMPDIR },
  });
  const left = readdirSync(TMPDIR);
  const lastLine = ran.stdout.trimEnd().split('\n').at(-1) ?? '';
  const { status, stdout, stderr } = ran;
  return { status, stdout, stderr, left, count: JSON.parse(lastLine) };
}

/** Runs a script in bash, with the program as `earshot` and without settings of earshot. */
async function inShell(script: string): Promise<string> {
  const earshot = `earshot() { "${process.execPath}" "${program}" "$@"; }`;
  const run = promisify(execFile);
  const env = { PATH: process.env.PATH ?? '' };
  return (
    await run('bash', ['--norc', '-ec', `${earshot}\n${script}`], {
      cwd: temporaryDirectory(),
      env,
    })
  ).stdout;
}

/** Starts a demo that runs until a signal; resolves when three notifications have arrived. */
async function startDemo(...args: string[]) {
  const TMPDIR = temporaryDirectory();
  const child = spawn(process.execPath, [program, 'demo', ...args], {
    env: { ...process.env, TMPDIR },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const printed = { out: '', err: '' };
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed.err += text;
  });
  await new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed.out += text;
      if ((printed.out.match(/^ +\d+ {2}created /gm) ?? []).length >= 3) resolve();
    });
  });
  return { child, printed, TMPDIR };
}

itIfComplete(
  'prints the folder in which every command works on its data',
  { timeout: 120_000 },
  async () => {
    const { child, printed, TMPDIR } = await startDemo('--products', '800');
    const [line = ''] = /cd \S+/.exec(printed.out) ?? [];
    // The web page has the demo's data, and the stream sends further notifications.
    const [, page = ''] = /^ {2}web page {2}(http:\S+\/) /m.exec(printed.out) ?? [];
    const read = async (path: string) => (await fetch(new URL(path, page))).text();
    expect(await read('/')).toMatch(/<h1[^>]*>Overview<\/h1>/);
    expect(await read('/live')).toMatch(/>S2\w_MSI/);
    for (const path of ['/coverage', '/alerts', '/quarantine', '/summaries', '/subscriptions'])
      expect(await read(path)).toContain('<nav aria-label="Pages">');
    const stream = await fetch(new URL('/api/live', page));
    let frames = '';
    for await (const bytes of stream.body ?? []) {
      frames += new TextDecoder().decode(bytes);
      if (/"productName":"S2/.test(frames)) break;
    }
    const shown = await inShell(
      `${line}; earshot admin health; earshot subscriptions list; earshot status --json; echo; echo ROWS; earshot query --json`,
    );
    expect(shown).toMatch(/demo-deletions.*running|running.*demo-deletions/);
    expect(shown).toContain('"receiver"');
    const rows = JSON.parse(shown.slice(shown.indexOf('ROWS') + 4)) as object[];
    expect(rows.length).toBeGreaterThanOrEqual(3);
    // One hour of the past is missing, until the receiver has compared its log with the catalogue.
    const [, missing = ''] = /stored, (\d+) of one hour missing\./.exec(printed.out) ?? [];
    expect(Number(missing)).toBeGreaterThan(0);
    expect(printed.out).toMatch(/^ {2}\d{4}-\d\d-\d\d .*!/m);
    const fetched = `The comparison found and fetched ${missing} missing notifications:`;
    await vi.waitUntil(() => printed.out.includes(fetched), 90_000);
    expect(printed.out.split(fetched)[1]).toMatch(/^ {2}\d{4}-\d\d-\d\d .*▒[\s\S]*▒ /m);
    const coverage = JSON.parse(await inShell(`${line}; earshot coverage --json`));
    expect(coverage).toMatchObject({ comparison: { automatic: true }, missing: 0 });
    const recovered = coverage.subscriptions.map((one: { recovered: number }) => one.recovered);
    expect(recovered.reduce((sum: number, one: number) => sum + one, 0)).toBe(Number(missing));
    const exit = once(child, 'exit');
    child.kill('SIGINT');
    expect(await exit).toEqual([0, null]);
    expect(readdirSync(TMPDIR)).toEqual([]);
  },
);

itIfComplete(
  'recovers lost notifications at Ctrl-C, and then ends',
  { timeout: 60_000 },
  async () => {
    const { child, printed, TMPDIR } = await startDemo('--faults');
    const [, control = ''] = /sandbox +(http\S+)/.exec(printed.out) ?? [];
    // From now on, every notification is lost.
    await fetch(`${control}/faults`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ lost: 1 }),
    });
    const totals = async () =>
      (await (await fetch(`${control}/totals`)).json()) as { lost: number };
    await vi.waitUntil(async () => (await totals()).lost >= 2, 20_000);
    const close = once(child, 'close');
    child.kill('SIGINT');
    expect(await close).toEqual([0, null]);
    expect(printed.out).toMatch(/^\$ .*\breconcile {3}recovers lost notifications:$/m);
    expect(printed.err).toMatch(/^Recovered \d+ missing events?\. Expected: \d+ events\. /m);
    expect(printed.out).toMatch(/^\d+ notifications stored, /m);
    expect(readdirSync(TMPDIR)).toEqual([]);
  },
);

const hasScript = existsSync('/usr/bin/script');

it.skipIf(!hasScript)(
  'shows progress on a terminal (needs script of util-linux)',
  {
    timeout: 60_000,
  },
  () => {
    const command = `${process.execPath} ${program} demo --once --products 20`;
    const TMPDIR = temporaryDirectory();
    const env = { ...process.env, TMPDIR };
    const { stdout } = spawnSync('script', ['-qec', command, '/dev/null'], {
      encoding: 'utf8',
      env,
    });
    for (const phase of ['starting sandbox and receiver', 'waiting for the summaries'])
      expect(stdout).toContain(`\r${phase} …`);
    const counts = [...stdout.matchAll(/delivered \d+ of (\d+) notifications/g)];
    expect(Math.max(...counts.map(([, count]) => Number(count)))).toBeLessThanOrEqual(20);
    expect(counts.length).toBeGreaterThan(0);
    expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/^\{"published":20,/);
  },
);

describe('the demo', { timeout: 120_000 }, () => {
  it('stores each of 200 products once, and leaves no files', () => {
    const { status, stderr, left, count } = demo('--products', '200');
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const all = { published: 200, delivered: 200, stored: 200 };
    expect(count).toEqual({ ...all, duplicates: 0, quarantined: 0, summaries: 200 });
    expect(left).toEqual([]);
  });

  it('stores every delivered notification once despite faults, and lists each loss', () => {
    const { status, stdout, stderr, count } = demo('--products', '300', '--faults');
    expect(status).toBe(0);
    expect(count.published).toBe(300);
    expect(count.stored).toBe(count.delivered);
    expect(count.delivered).toBeLessThan(300);
    expect(count.duplicates).toBeGreaterThan(0);
    expect(count.quarantined).toBe(0);
    const lost = count.published - count.delivered;
    expect(stderr.match(/^ {2}created /gm)).toHaveLength(lost);
    // Reconcile recovers each loss.
    expect(count.recovered).toBe(lost);
    const row = new RegExp(`^demo +created +300 +${300 - lost} +0 +${lost} +0$`, 'm');
    expect(stdout).toMatch(row);
    expect(stderr).toMatch(/^Recovered \d+ missing events?\. Expected: \d+ events\. /m);
    // There are more products than the budget of summary requests for an hour.
    expect(count.summaries).toBe(250);
    expect(stderr).toMatch(
      /^\d+ summaries waiting: the budget of 250 requests per day is used up\.$/m,
    );
  });

  it('stores all 132 real records', (context) => {
    if (!existsSync(records)) return context.skip('the folder with real records is missing');
    const { status, count } = demo('--records', records);
    expect(status).toBe(0);
    const all = { published: 132, delivered: 132, stored: 132 };
    expect(count).toMatchObject({ ...all, quarantined: 0, summaries: 132 });
  });
});
