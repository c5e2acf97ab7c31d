/** The pages about the operation of the receiver, as a person and a browser see them. */

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { QuarantineEntry } from '../../../src/core/terms/ports.ts';
import { emptyStatus, sampleStatus } from '../../features/status/status-sample.ts';
import { textOf } from '../../helpers/page-text.ts';
import { openConsole } from '../api/console-context.ts';
import { filledOperations, quarantineRow } from '../api/operation-sample.ts';
import { hasChromium, openBrowser, openPage } from './browser.ts';
import { hostileSummary } from './seeded-operation.ts';
import { hostileBodies, openSeeded, type SeededReceiver } from './seeded-receiver.ts';

let seeded: SeededReceiver;

beforeAll(async () => {
  seeded = await openSeeded({ products: 60 });
});

afterAll(() => seeded.close());

async function pageAt(path: string): Promise<{ status: number; page: string; text: string }> {
  const answer = await fetch(seeded.url + path);
  const page = await answer.text();
  return { status: answer.status, page, text: textOf(page) };
}

describe('/subscriptions', () => {
  it('shows what is known of each, its gap and history, and the commands', async () => {
    const { text } = await pageAt('/subscriptions');
    for (const part of [
      'alps ok running, last notification',
      "filter Collection/Name eq 'SENTINEL-2' Copy URL path /notifications/alps",
      'catalogue id c06f2e68-fb9e-4e22-ac57-49566e8621fb',
      'user name of pushes catalogue (last used',
      'earshot subscriptions pause alps',
    ])
      expect(text).toContain(part);
    expect(text).toMatch(/automatic pause \(UTC\) \S+ \S+ in 60 d/);
    const andes = text.slice(text.indexOf('andes ok paused on purpose'));
    expect(andes).toContain('earshot subscriptions resume andes');
    expect(andes).toMatch(/ open The subscription was paused\..* created register/);
    const one = await pageAt('/subscriptions?subscription=alps');
    expect(one.text).not.toContain('/notifications/andes');
  });

  it('shows the certificate', async () => {
    const { get } = await openConsole({
      ...filledOperations(),
      status: async () => sampleStatus(true),
    });
    const text = textOf((await get('/subscriptions')).text);
    expect(text).toMatch(/certificate expires \(UTC\) 2026-05-22 12:00 in 20 d/);
    expect(text).toContain('last failure The name was not proved.');
  });
});

it('/sinks shows each sink with its state, retries, and dead letters as text, with the commands', async () => {
  const { text, page } = await pageAt('/sinks');
  expect(text).toMatch(/ archive ok command 5 0 0 /);
  const hook = text.slice(text.lastIndexOf('hook warning'));
  expect(hook).toMatch(/^hook warning The sink hook .* position \S+ .* waiting 2 delivered 4 /);
  expect(hook).toMatch(/ product reason next attempt \(UTC\) .* The webhook answered 503\./);
  const reason = /The webhook answered 422: <b>unknown tile<\/b> \\u001b\[31m/g;
  expect(text.match(reason)?.length).toBeGreaterThanOrEqual(3);
  expect(page).not.toContain('<b>');
  expect(text).toContain('earshot sinks retry hook');
});

const noSummaries = { waiting: 0, dueAtUs: null, requests: 0, tokens: 0, refusedAnswer: null };

it.each([
  ['/sinks', 'A sink is a program of yours'],
  ['/alerts', 'No alert is active.'],
  ['/quarantine', 'The quarantine is empty.'],
  ['/summaries', 'EARSHOT_SUMMARY : each or digest'],
])('%s without content explains it: %s', async (path, words) => {
  const summaries = { mode: 'off' as const, ...noSummaries };
  const { get } = await openConsole({ status: async () => ({ ...emptyStatus(), summaries }) });
  expect(textOf((await get(path)).text)).toContain(words);
});

describe('/alerts', () => {
  it('shows active alerts first, with evidence and the next step, then those resolved in the period', async () => {
    const { text, page } = await pageAt('/alerts');
    const at = text.indexOf('Resolved alerts');
    const [active, resolved] = [text.slice(0, at), text.slice(at)];
    expect(active).toMatch(
      /missing: alps warning 4 events of the subscription alps are missing .* Next: /,
    );
    // The same command as on /coverage.
    const [, hour = ''] = /data-copy="(earshot reconcile [^"]*)"/.exec(page) ?? [];
    expect((await pageAt('/coverage')).text).toContain(hour);
    expect(active).toContain('sent to nobody: no channel was configured');
    expect(resolved).toMatch(/ warning disk The disk is nearly full\. 24 h/);
    const recent = (await pageAt('/alerts?since=2h')).text;
    expect(recent).toContain('missing: alps');
    expect(recent).not.toContain('nearly full');
    expect((await pageAt('/alerts?since=7d&until=30h')).text).toContain('nearly full');
  });
});

describe('/quarantine', () => {
  it('lists the bodies, newest first, with path, reason, size and source', async () => {
    const { text, page } = await pageAt('/quarantine');
    expect(text).toMatch(
      /2 bodies in quarantine\. .* \/notifications\/alps \d+ push The body is not JSON: /,
    );
    expect([...page.matchAll(/href="\/quarantine\/(\d+)"/g)].map(([, id]) => id)).toEqual([
      '2',
      '1',
    ]);
    expect(text).toContain('earshot quarantine retry --all');
  });

  it('shows the beginning of a long body, its lines, and headers as one line each', async () => {
    // Two bytes each: the cut is between characters.
    const long = await itemPage({ body: new TextEncoder().encode(`x${'é'.repeat(30_000)}`) });
    expect(textOf(long)).toMatch(/x(é{16383}) The first 32 KiB of 58 KiB are shown\./);
    expect(long).toContain('earshot quarantine show 1');
    const body = new TextEncoder().encode('first\r\nsecond\tcolumn\n\u0000\ufeff\u{e0041}');
    const page = await itemPage({ body, headers: ['X-A', 'one\nX-B: two'] });
    expect(page).toContain('first\nsecond\tcolumn\n\\u0000\ufeff\u{e0041}</pre>');
    expect(page).toContain('X-A: one\\u000aX-B: two</pre>');
  });
});

async function itemPage(changes: Partial<QuarantineEntry>): Promise<string> {
  const { quarantine } = filledOperations();
  const entry = { ...quarantineRow(1), ...changes };
  const quarantineEntry = async () => ({ ...entry, bodyBytes: entry.body.length });
  const { get } = await openConsole({ quarantine: { ...quarantine, quarantineEntry } });
  return (await get('/quarantine/1')).text;
}

it('/summaries shows texts as plain text, with facts, state, model and reason', async () => {
  const { text, page } = await pageAt('/summaries');
  expect(text).toContain(hostileSummary.replace('\u202e', '\\u202e'));
  expect(page).not.toContain('<img');
  expect(text).toMatch(/openai\/gpt-oss Clouds .* Facts mission Sentinel-2A written /);
  expect(text).toMatch(/digest of alps, \S+ \S+ to .* digest openai\/gpt-oss 187 products/);
  expect(text).toMatch(/from the template Sentinel-2A\. .* The answer was refused\./);
  expect(text).toMatch(/waiting next attempt in 60 min Not reached\./);
  expect(page.match(/id="summary-\d+"/g)).toHaveLength(6);
  expect((await pageAt('/summaries?since=10m')).page).not.toContain('id="summary-');
});

describe.skipIf(!hasChromium)('in a browser (needs Chromium)', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await openBrowser();
  });

  afterAll(() => browser.close());

  it.each([
    [1, hostileBodies[0] ?? ''],
    [2, '{"ProductId":"\\u202egpj.exe","note":"\\u001b[31mred\\u001b[0m \\u2066hidden\\u2069"}'],
  ])('the hostile body %i is shown as text', async (id, shown) => {
    const { page, problems } = await openPage(browser, `${seeded.url}/quarantine/${id}`);
    const body = page.getByRole('region', { name: 'Body' });
    expect(await body.textContent()).toBe(shown);
    expect(await page.title()).toBe(`Quarantined body ${id} · earshot`);
    expect(await page.locator('main img, main script').count()).toBe(0);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it('copies the command of an alert', async () => {
    const options = { permissions: ['clipboard-read', 'clipboard-write'] };
    const { page } = await openPage(browser, `${seeded.url}/alerts`, options);
    await page.locator('.item').getByText('Copy').first().click();
    await page.getByText('Copied').waitFor();
    const copied = await page.evaluate('navigator.clipboard.readText()');
    expect(copied).toMatch(/^earshot reconcile --since \S+ --until \S+ --subscription alps$/);
    await page.context().close();
  });
});
