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
  const counts =
    /matched {2}(\d+) of (\d+).*stored {3}(\d+).*found {4}(\d+) by the filter, (\d+) /s;
  const [matched, of, stored, byFilter, byPlace] = (counts.exec(ran.stdout) ?? [])
    .slice(1)
    .map(Number);
  const filtered = { matched, of, stored, byFilter, byPlace };
  const { status, stdout, stderr } = ran;
  return { status, stdout, stderr, left, filtered, count: JSON.parse(lastLine) };
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
      if (/^ +3 .*created/m.test(printed.out)) resolve();
    });
  });
  return { child, printed, TMPDIR };
}

itIfComplete(
  'prints one line after which every command works on its data',
  { timeout: 60_000 },
  async () => {
    const { child, printed, TMPDIR } = await startDemo('--products', '400');
    const [line = ''] = /set -a; \. \S+; set \+a/.exec(printed.out) ?? [];
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
      `${line}; earshot health; earshot subscriptions list; earshot status --json; echo; echo ROWS; earshot query --json`,
    );
    expect(shown).toMatch(/demo-deletions.*running|running.*demo-deletions/);
    expect(shown).toContain('"receiver"');
    const rows = JSON.parse(shown.slice(shown.indexOf('ROWS') + 4)) as object[];
    expect(rows.length).toBeGreaterThanOrEqual(3);
    const checked = await inShell(
      `${line}; earshot alerts 2>&1; echo COVERAGE; earshot coverage; earshot coverage --json`,
    );
    // The demo's receiver has a watchdog, but no automatic comparison.
    const [alerts, coverage] = checked.split('COVERAGE');
    expect(alerts).toBe('No active alerts. `earshot alerts --all` shows resolved alerts.\n');
    expect(coverage).toContain('automatic comparison is off: EARSHOT_RECONCILE is off.');
    expect(coverage).toContain('"automatic": false');
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
    expect(printed.err).toMatch(/^ {2}recovered demo(-deletions)? (created|modified|deleted) /m);
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
    for (const phase of [
      'starting sandbox and receiver',
      'registering',
      'waiting for the summaries',
    ])
      expect(stdout).toContain(`\r${phase} …`);
    // Two subscriptions get some of the 20 products: products are counted, not their notifications.
    const counts = [...stdout.matchAll(/published (\d+) products; delivered \d+ of \d+ /g)];
    expect(Math.max(...counts.map(([, count]) => Number(count)))).toBeLessThanOrEqual(20);
    expect(counts.length).toBeGreaterThan(0);
    expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/^\{"published":20,/);
  },
);

describe('the demo', { timeout: 120_000 }, () => {
  it('stores each of 200 products once, and leaves no files', () => {
    const { status, stderr, left, filtered, count } = demo('--products', '200');
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const all = { published: 200, delivered: 200, stored: 200 };
    expect(count).toEqual({ ...all, duplicates: 0, quarantined: 0, summaries: 200 });
    expect(left).toEqual([]);
    // The filtered subscription gets only matching products, which a search by area finds.
    const { matched } = filtered;
    expect(filtered).toEqual({
      matched,
      of: 200,
      stored: matched,
      byFilter: matched,
      byPlace: matched,
    });
    expect(matched).toBeGreaterThan(0);
    expect(matched).toBeLessThan(200);
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
    expect(stderr).toMatch(/^Recovered \d+ missing events?\. Expected: \d+ events\. `/m);
    expect(stderr.match(/^ {2}recovered demo created /gm)).toHaveLength(lost);
    const restored = stderr.match(/^ {2}recovered demo-filtered created /gm) ?? [];
    expect(stderr.match(/^ {2}demo-filtered created /gm) ?? []).toHaveLength(restored.length);
    // There are more products than the budget of summary requests for an hour.
    expect(count.summaries).toBe(250);
    expect(stderr).toMatch(
      /^\d+ summaries waiting: the budget of 250 requests per hour is used up\.$/m,
    );
  });

  it('stores all 132 real records', (context) => {
    if (!existsSync(records)) return context.skip('the folder with real records is missing');
    const { status, filtered, count } = demo('--records', records);
    expect(status).toBe(0);
    const all = { published: 132, delivered: 132, stored: 132 };
    expect(count).toMatchObject({ ...all, quarantined: 0, summaries: 132 });
    expect(filtered).toEqual({ matched: 77, of: 132, stored: 77, byFilter: 77, byPlace: 77 });
  });
});
