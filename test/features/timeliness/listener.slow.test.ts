/** The pages about time, `/timeliness` and `/coverage`, in Chromium over a receiver with history. */

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isoMinute } from '../../../src/core/page/page-state.ts';
import { hourUs } from '../../../src/core/terms/dates.ts';
import {
  createMemoryCompleteness,
  createMemoryLog,
  openConsole,
} from '../../core/api/console-context.ts';
import { hasChromium, openBrowser, openPage } from '../../core/page/browser.ts';
import { openSeeded, type SeededReceiver } from '../../core/page/seeded-receiver.ts';
import { textOf } from '../../helpers/page-text.ts';
import { settingWith } from '../../receiver/serve-config.ts';

const panelOf = (page: Page, title: string) =>
  page.locator('section.panel').filter({ has: page.getByRole('heading', { name: title }) });

describe.skipIf(!hasChromium)('the pages about time (needs Chromium)', () => {
  let seeded: SeededReceiver;
  let browser: Browser;
  beforeAll(async () => {
    [seeded, browser] = await Promise.all([openSeeded(), openBrowser()]);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await seeded?.close();
  });

  const open = (path: string, options: Parameters<typeof openPage>[2] = {}) =>
    openPage(browser, seeded.url + path, options);

  it('show yesterday’s missing hour: as first, with its command, and in the table', async () => {
    const { page, problems } = await open('/coverage');
    const { missingHourUs } = seeded;
    const [since, until] = [isoMinute(missingHourUs), isoMinute(missingHourUs + hourUs)];
    const panel = panelOf(page, 'Coverage');
    expect(await panel.locator('p').first().textContent()).toMatch(
      /^414 events were expected in the compared hours: 410 are in the log, 4 are missing\.$/,
    );
    expect(await panel.locator('code').allTextContents()).toContain(
      `earshot reconcile --since ${since} --until ${until} --subscription alps`,
    );
    const href = `/live?since=${since}&until=${until}&subscription=alps`;
    const cell = page.getByRole('table').getByRole('link', { name: 'missing' });
    expect(await cell.getAttribute('title')).toMatch(
      /: missing\. Expected 6, received 2, recovered 0, late 0, missing 4$/,
    );
    await cell.click();
    expect(page.url()).toBe(seeded.url + href);
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Live');
    // Nothing was published in this hour; a notification of the hour before may be delayed into it.
    expect(await page.locator('[data-list] tbody tr').count()).toBeLessThanOrEqual(1);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it('draw a line that is interrupted where nothing was received', async () => {
    const period = `since=${isoMinute(seeded.nowUs - 48 * hourUs)}&until=${isoMinute(seeded.nowUs)}`;
    const search = `?${period}&collection=SENTINEL-5P`;
    const { page } = await open(`/timeliness${search}`);
    const chart = panelOf(page, 'Notification to storage').locator('.scroll svg');
    const api = (await (await fetch(`${seeded.url}/api/timeliness${search}`)).json()) as Api;
    const starts = api.hours.map(({ hour }) => Date.parse(hour));
    const runs = starts.filter((ms, i) => i === 0 || ms - (starts[i - 1] ?? 0) > 3_600_000);
    expect(runs.length).toBeGreaterThan(1);
    expect(await chart.locator('.line.p50').count()).toBe(runs.length);
    const hours = chart.locator('a');
    expect(await hours.count()).toBe(starts.length);
    expect(await hours.first().locator('title').textContent()).toMatch(/UTC: median \d+ ms, p90 /);
    await hours.nth(3).click();
    expect(new URL(page.url()).pathname).toBe('/live');
    await page.locator('[data-list] tbody tr').first().waitFor();
    const listed = await page.locator('[data-list] tbody tr').count();
    expect(listed).toBe(api.hours[3]?.notificationToReceipt?.count);
    await page.context().close();
  });
});

const delay = { count: 3, negative: 2, p50: -1.5, p90: 0.25, p99: 4, max: 4 };
const none = { sensingToPublication: null, publicationToNotification: null };
const delays = { ...none, notificationToReceipt: delay };

async function openWithDelays() {
  const notifications = { ...createMemoryLog([]), lastPosition: async () => 10 };
  const context = await openConsole({ notifications });
  context.products.state.indexedPosition = 10;
  context.products.timelinessOf = () => ({
    total: { ...delays, sensingToReceipt: null, publicationToReceipt: null },
    hours: [{ hourUs: Date.UTC(2026, 4, 2, 10) * 1000, ...delays }],
    collections: [{ collection: '<b>\u202e', ...delays }],
  });
  return context;
}

it('the page of delays explains negative delays, stages without delays, and shows names as text', async () => {
  const { get } = await openWithDelays();
  const { text } = await get('/timeliness');
  const shown = textOf(text);
  expect(shown).toContain('median −1.5 s p90 250 ms p99 4 s');
  expect(shown).toContain('2 of 3 delays are negative.');
  expect(shown).toContain('Synchronize it with NTP.');
  expect(shown.match(/No notification of this period has both dates/g)).toHaveLength(2);
  expect(shown).toMatch(/\\u202e 3 −1\.5 s 250 ms 4 s 4 s/);
  expect(text).not.toContain('<b>');
  expect(shown).not.toMatch(/\u202e|NaN|undefined|Infinity/);
  expect(shown).not.toContain('not indexed yet');
});

describe('the page of coverage', () => {
  const startUs = Date.UTC(2026, 4, 2) * 1000;
  const counts = { expected: 5, pushed: 2, late: 0, recovered: 0, missing: 3 };
  const hourAt = (hour: number) => ({
    ...{ subscription: 'alps', event: 'created' as const, ...counts },
    hourUs: startUs + hour * hourUs,
    comparedAtUs: startUs,
  });
  const definitions = [
    { subscription: 'alps', fromUs: startUs, events: ['created' as const], filter: '' },
  ];

  it('joins missing hours that follow each other, newest first', async () => {
    const others = ['pushed', 'late', 'recovered'].map((state, i) => {
      return { ...hourAt(9 + i), ...{ pushed: 0, missing: 0 }, [state]: 5 };
    });
    const hours = [...[2, 3, 4, 8].map(hourAt), ...others];
    const completeness = createMemoryCompleteness({ definitions, hours });
    const { get } = await openConsole({ completeness });
    const { text } = await get('/coverage');
    expect([...text.matchAll(/<code>(earshot reconcile [^<]+)/g)].map(([, one]) => one)).toEqual([
      'earshot reconcile --since 2026-05-02T08:00Z --until 2026-05-02T09:00Z --subscription alps',
      'earshot reconcile --since 2026-05-02T02:00Z --until 2026-05-02T05:00Z --subscription alps',
    ]);
    const states = [...text.matchAll(/: (\w+)\. Expected 5, received/g)].map(([, state]) => state);
    const missing = Array(4).fill('missing');
    expect(states).toEqual([...missing, 'pushed', 'late', 'recovered']);
    expect(textOf(text)).toMatch(/ 9 2026-05-02 02:00 \S+ \S+ ago 2026-05-02 05:00 /);
  });

  it('explains why hours are not compared', async () => {
    const completeness = createMemoryCompleteness({ definitions });
    const setting = settingWith({ reconcile: false });
    const { get } = await openConsole({ completeness, setting });
    const shown = textOf((await get('/coverage')).text);
    expect(shown).toContain('it is not known whether events are missing');
    expect(shown).toContain('alps: not compared: EARSHOT_RECONCILE is off.');
  });
});

interface Api {
  hours: { hour: string; notificationToReceipt: { count: number } | null }[];
}
