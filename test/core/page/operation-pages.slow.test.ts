/** The pages about the operation of the receiver, as a person and a browser see them. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { QuarantineEntry } from '../../../src/core/terms/ports.ts';
import type { AlertQuery, ListedAlert } from '../../../src/features/alerts/terms.ts';
import { emptyStatus, sampleStatus } from '../../features/status/status-sample.ts';
import { createMemoryOperations, openConsole } from '../api/console-context.ts';
import { alertRow, filledOperations, quarantineRow } from '../api/operation-sample.ts';
import { hasChromium, openBrowser, openPage } from './browser.ts';
import { hostileSummary } from './seeded-operation.ts';
import { hostileBodies, openSeeded, type SeededReceiver } from './seeded-receiver.ts';

let seeded: SeededReceiver;

beforeAll(async () => {
  seeded = await openSeeded({ products: 60 });
});

afterAll(() => seeded.close());

const entities: Readonly<Record<string, string>> = {
  ...{ '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' },
};

/** Returns the text of the main column, with single blanks. */
function textOf(page: string): string {
  const main = page.slice(page.indexOf('<main'), page.indexOf('</main>'));
  return main
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(?:lt|gt|quot|amp|#39);/g, (entity) => entities[entity] ?? '')
    .replaceAll(/\s+/g, ' ');
}

async function pageAt(path: string): Promise<{ status: number; page: string; text: string }> {
  const answer = await fetch(seeded.url + path);
  const page = await answer.text();
  return { status: answer.status, page, text: textOf(page) };
}

describe('/subscriptions', () => {
  it('shows what is known of a registered subscription, and the commands', async () => {
    const { text } = await pageAt('/subscriptions?subscription=alps');
    expect(text).toContain('alps ok running, last notification');
    expect(text).toContain(
      "filter Collection/Name eq 'SENTINEL-2' Copy URL path /notifications/alps",
    );
    expect(text).toContain('catalogue id c06f2e68-fb9e-4e22-ac57-49566e8621fb');
    expect(text).toMatch(/automatic pause \(UTC\) \S+ \S+ in 60 d/);
    expect(text).toContain('user name of pushes catalogue (last used');
    expect(text).toContain('earshot subscriptions pause alps');
    expect(text).not.toContain('/notifications/andes');
  });

  it('shows the gap and the history of a paused one, and paths without a subscription', async () => {
    const { text } = await pageAt('/subscriptions');
    const andes = text.slice(text.indexOf('andes ok paused on purpose'));
    expect(andes).toContain('earshot subscriptions resume andes');
    expect(andes).toMatch(/ open The subscription was paused\..* created register/);
    expect(text).toMatch(/Paths without a subscription .* \/notifications\/old-path /);
  });

  it('shows the certificate, and a subscription that was removed today', async () => {
    const { administration } = filledOperations();
    const today = { ...removal, atUs: Date.UTC(2026, 4, 2, 1) * 1_000 };
    const { get } = await openConsole({
      status: async () => sampleStatus(true),
      administration: {
        ...administration,
        history: async () => [
          { ...today, subscription: 'gone' },
          { ...removal, subscription: 'earlier' },
        ],
      },
    });
    const text = textOf((await get('/subscriptions')).text);
    expect(text).toMatch(/certificate expires \(UTC\) 2026-05-22 12:01 in 20 d/);
    expect(text).toContain('last failure The name was not proved.');
    const removed = text.slice(text.indexOf('Removed subscriptions'));
    expect(removed).toMatch(/ gone deleted subscriptions No longer needed\./);
    expect(removed).not.toContain('earlier');
  });
});

const removal = {
  ...{ atUs: 1_777_000_000_000_000, subscriptionId: null, action: 'deleted' as const },
  ...{ actor: 'subscriptions' as const, reason: 'No longer needed.' },
};

it('the navigation marks the pages about parts with a problem', async () => {
  const { page } = await pageAt('/quarantine');
  const links = page.slice(page.indexOf('<nav'), page.indexOf('</nav>')).split('<li');
  const marked = links.flatMap(
    (link) => /data-key.*>(\w+)<span class="badge/s.exec(link)?.[1] ?? [],
  );
  expect(marked).toEqual(['Overview', 'Coverage', 'Sinks', 'Alerts']);
});

describe('/sinks', () => {
  it('shows each sink with its state, and what is to be retried', async () => {
    const { text } = await pageAt('/sinks');
    expect(text).toMatch(/ archive ok command 5 0 0 /);
    const hook = text.slice(text.lastIndexOf('hook warning'));
    expect(hook).toMatch(/^hook warning The sink hook .* position \S+ .* waiting 2 delivered 4 /);
    expect(hook).toMatch(/ id product reason next attempt \(UTC\) .* The webhook answered 503\./);
    expect(text).toContain('earshot sinks replay --sink hook');
  });

  it('shows dead letters with product and reason as text, and the commands', async () => {
    const { text, page } = await pageAt('/sinks');
    const reason = /The webhook answered 422: <b>unknown tile<\/b> \\u001b\[31m/g;
    expect(text.match(reason)?.length).toBeGreaterThanOrEqual(3);
    expect(page).not.toContain('<b>');
    expect(text).toMatch(/earshot sinks retry hook \d+,\d+ .* earshot sinks drop hook \d+,\d+/);
  });

  it('explains what a sink is when there is none', async () => {
    const { get } = await openConsole({ status: async () => emptyStatus() });
    const { text: page } = await get('/sinks');
    expect(textOf(page)).toContain(
      'A sink is a program of yours that gets each matching notification',
    );
    expect(textOf(page)).toContain('docs/sinks.md');
    expect(page).not.toMatch(/href="https?:/);
    expect(page).not.toContain('earshot sinks test');
  });
});

describe('/alerts', () => {
  it('shows active alerts first, with evidence and the next step, then resolved ones', async () => {
    const { text, page } = await pageAt('/alerts');
    const at = text.indexOf('Resolved alerts');
    const [active, resolved] = [text.slice(0, at), text.slice(at)];
    expect(active).toMatch(
      /missing: alps warning 4 events of the subscription alps are missing from the log\. They occurred between .* Next: /,
    );
    // The same command as on /coverage.
    const [, hour = ''] = /data-copy="(earshot reconcile [^"]*)"/.exec(page) ?? [];
    expect(textOf((await pageAt('/coverage')).page)).toContain(hour);
    expect(active).toContain('sent to nobody: no channel was configured');
    expect(resolved).toMatch(/ warning disk The disk is nearly full\. 24 h/);
  });

  it('shows the command for a test message only with a channel', async () => {
    for (const has of [true, false]) {
      const { get } = await openConsole({ hasAlertChannel: () => has });
      const { text } = await get('/alerts');
      expect(text.includes('earshot alerts --test')).toBe(has);
      expect(text.includes('docs/monitoring.md')).toBe(!has);
    }
  });

  it('shows resolved alerts of the period only', async () => {
    expect((await pageAt('/alerts?since=2h')).text).toContain(
      'No alert was resolved in this period.',
    );
    expect((await pageAt('/alerts?since=7d&until=60h')).text).not.toContain('nearly full');
    expect((await pageAt('/alerts?since=7d&until=30h')).text).toContain('nearly full');
    expect((await pageAt('/alerts?since=2h')).text).toContain('missing: alps');
  });

  it('shows which channels have accepted an alert, and why others have not', async () => {
    const alert = alertRow(1, { channels: ['command', 'url'] });
    const { get } = await openConsole({ alerts: alertReader([alert]) });
    const text = textOf((await get('/alerts')).text);
    expect(text).toContain(
      'EARSHOT_ALERT_COMMAND (accepted), EARSHOT_ALERT_URL (failed, will be retried: It answered 500.)',
    );
    // A delivery that was given up is reported for a week: later it is not known whether it was accepted.
    const old = { ...alert, id: 2, raisedAtUs: alert.raisedAtUs - 7 * 86_400_000_000 };
    const later = await openConsole({ alerts: alertReader([alert, old]) });
    const oldText = textOf((await later.get('/alerts')).text);
    expect(oldText).toContain('EARSHOT_ALERT_COMMAND (nothing to be sent)');
  });

  it('continues a long list of resolved alerts on the next page', async () => {
    const alerts = Array.from({ length: 120 }, (_, i) =>
      alertRow(i + 1, { text: `Cause ${i + 1}.`, resolvedAtUs: Date.UTC(2026, 4, 2) * 1000 }),
    );
    const { get } = await openConsole({ alerts: alertReader(alerts) });
    const seen: string[] = [];
    for (let path: string | undefined = '/alerts?since=7d'; path !== undefined; ) {
      const { text: page } = await get(path);
      seen.push(...(textOf(page).match(/Cause \d+/g) ?? []));
      path = /href="([^"]*)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
      expect(seen.length).toBeLessThan(200);
    }
    expect(seen).toEqual(alerts.map(({ id }) => `Cause ${id}`).toReversed());
  });

  it('reports that no alert is active', async () => {
    const { get } = await openConsole();
    const text = textOf((await get('/alerts')).text);
    expect(text).toContain('No alert is active. The receiver checks every minute');
  });
});

const endless = Number.POSITIVE_INFINITY;

/** Alerts newest first; the delivery of the first one through `url` has failed. */
function alertReader(rows: readonly ListedAlert[]) {
  const { alerts: none } = createMemoryOperations();
  return {
    ...none,
    alerts: async ({ all, resolved = false, beforeId = endless, limit }: AlertQuery) =>
      rows
        .filter(({ id }) => id < beforeId)
        .filter(({ resolvedAtUs }) => (resolvedAtUs === null ? !resolved : all))
        .toReversed()
        .slice(0, limit),
    unsentDeliveries: async () =>
      rows.slice(0, 1).map((alert) => ({
        ...{ id: 1, alert, change: 'raised' as const, channel: 'url' as const, attempts: 1 },
        ...{ dueAtUs: 0, error: 'It answered 500.', isGivenUp: false },
      })),
  };
}

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

  it('shows each body once on its pages', async () => {
    const bodies = Array.from({ length: 120 }, (_, i) => i + 1);
    const { get } = await openConsole(filledOperations({ bodies }));
    const seen: number[] = [];
    for (let path: string | undefined = '/quarantine?released=true'; path !== undefined; ) {
      const { text: page } = await get(path);
      seen.push(...[...page.matchAll(/href="\/quarantine\/(\d+)"/g)].map(([, id]) => Number(id)));
      path = /href="([^"]*)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
      expect(seen.length).toBeLessThan(200);
    }
    expect(seen).toEqual(bodies.toReversed());
  });

  it('shows the beginning of a long body, and the command for the rest', async () => {
    // Two bytes each: the cut is between characters.
    const text = await itemText({ body: new TextEncoder().encode(`x${'é'.repeat(30_000)}`) });
    expect(text).toMatch(/x(é{16383}) The first 32 KiB of 58 KiB are shown\./);
    expect(text).toContain('earshot quarantine show 1');
  });

  it('keeps the lines of a body, and shows headers as one line each', async () => {
    const body = new TextEncoder().encode('first\r\nsecond\tcolumn\n\u0000\ufeff\u{e0041}');
    const entry = { body, headers: ['X-A', 'one\nX-B: two'] };
    const { get } = await openConsole({ quarantine: quarantineOf(entry) });
    const { text: page } = await get('/quarantine/1');
    expect(page).toContain(
      'first\nsecond\tcolumn\n<span class="code-point">\\u0000\\ufeff\\u{e0041}</span>',
    );
    expect(page).toContain('X-A: one\\u000aX-B: two</pre>');
  });

  it.each(['/quarantine/99', '/quarantine/1.5', '/quarantine/x'])(
    'answers 404 for %s',
    async (path) => {
      expect(await pageAt(path)).toMatchObject({
        status: 404,
        text: expect.stringContaining('Not found'),
      });
    },
  );

  it('explains an empty quarantine', async () => {
    const { get } = await openConsole();
    expect(textOf((await get('/quarantine')).text)).toContain(
      'The quarantine is empty. Each received body',
    );
  });
});

function quarantineOf(changes: Partial<QuarantineEntry>) {
  const { quarantine } = filledOperations();
  const entry = { ...quarantineRow(1), ...changes };
  const quarantineEntry = async () => ({ ...entry, bodyBytes: entry.body.length });
  return { ...quarantine, quarantineEntry };
}

async function itemText(changes: Partial<QuarantineEntry>): Promise<string> {
  const { get } = await openConsole({ quarantine: quarantineOf(changes) });
  return textOf((await get('/quarantine/1')).text);
}

describe('/summaries', () => {
  it('shows texts as plain text, with facts, state, model and reason', async () => {
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

  it('explains how to enable summaries', async () => {
    const none = { waiting: 0, dueAtUs: null, requests: 0, tokens: 0, refusedAnswer: null };
    const status = { ...sampleStatus(), summaries: { mode: 'off' as const, ...none } };
    const { get } = await openConsole({ status: async () => status });
    const text = textOf((await get('/summaries')).text);
    expect(text).toContain('Summaries are off');
    expect(text).toContain('EARSHOT_SUMMARY : each or digest');
  });
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
