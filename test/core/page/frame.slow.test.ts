/** The frame of every page in Chromium: navigation, ages, refresh and connection. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { navigation } from '../../helpers/pages.ts';
import { hasChromium, openBrowser, openPage } from './browser.ts';
import { openSeeded, type SeededReceiver } from './seeded-receiver.ts';

describe.skipIf(!hasChromium)(
  'the frame of the page (needs Chromium)',
  { timeout: 120_000 },
  () => {
    let browser: Browser;
    let seeded: SeededReceiver;
    beforeAll(async () => {
      [browser, seeded] = await Promise.all([openBrowser(), openSeeded({ products: 30 })]);
    }, 60_000);
    afterAll(async () => {
      await browser?.close();
      await seeded?.close();
    });
    afterEach(async () => {
      for (const context of browser.contexts()) await context.close();
    });
    const open = async (path: string, options = {}) => {
      const opened = await openPage(browser, seeded.url + path, options);
      opened.page.setDefaultTimeout(40_000);
      return opened;
    };
    const push = () => seeded.push(seeded.generator.next(Date.now()));
    const focused = (page: Page) => page.evaluate<string>('document.activeElement.outerHTML');
    /** Opens a page with a live stream, and notes the requests of the page for data. */
    const openLive = async (path: string, options = {}) => {
      const opened = await open('/api', options);
      const requests: string[] = [];
      const atMs: number[] = [];
      opened.page.on('request', (request) => {
        if (['eventsource', 'xhr'].includes(request.resourceType())) requests.push(request.url());
        if (request.resourceType() === 'xhr') atMs.push(performance.now());
      });
      const stream = opened.page.waitForResponse((answer) => answer.url().includes('/api/live'));
      await opened.page.goto(seeded.url + path);
      expect((await stream).status()).toBe(200);
      return { ...opened, requests, atMs };
    };

    it('links every page with the period, and focuses the filter with /', async () => {
      const { page, problems } = await open('/?since=7d');
      for (const { path, label } of [...navigation].reverse()) {
        await page.locator(`nav a[href="${path}?since=7d"]`).click();
        await page.waitForURL(`${seeded.url}${path}?since=7d`);
        expect(await page.textContent('[aria-current="page"]')).toContain(label);
      }
      await page.goto(`${seeded.url}/products`);
      await page.keyboard.press('/');
      await page.keyboard.type('/');
      expect(await page.inputValue('[name=filter]')).toBe('/');
      expect(problems).toEqual([]);
    });

    it.each(['/live', '/map', '/alerts'])(
      'shows the title of %s first on a phone, and folds pages and filters into one button each',
      async (path) => {
        const { page, problems } = await open(path, { viewport: { width: 390, height: 844 } });
        const title = await page.locator('h1').boundingBox();
        expect(title?.y).toBeLessThan(100);
        const field = page.locator('select[name=since]');
        expect(await field.isVisible()).toBe(false);
        await page.locator('summary', { hasText: 'Filters' }).click();
        expect(await field.isVisible()).toBe(true);
        expect((await field.boundingBox())?.y).toBeGreaterThan(title?.y ?? 999);
        const links = page.locator('nav a');
        expect(await links.first().isVisible()).toBe(false);
        await page.locator('summary', { hasText: 'Menu' }).click();
        for (const link of await links.all()) {
          const { x = -1, width = 999 } = (await link.boundingBox()) ?? {};
          expect(x).toBeGreaterThanOrEqual(0);
          expect(x + width).toBeLessThanOrEqual(390);
        }
        await page.setViewportSize({ width: 1280, height: 844 });
        expect(await page.locator('summary:visible', { hasText: /Menu|Filters/ }).count()).toBe(0);
        expect([await links.first().isVisible(), await field.isVisible()]).toEqual([true, true]);
        expect(problems).toEqual([]);
      },
    );

    it('refreshes when a notification arrives, and keeps focus and scroll position', async () => {
      const size = { viewport: { width: 700, height: 400 } };
      const { page, problems, requests } = await openLive('/', size);
      const rows = page.locator('[data-list] tbody tr a');
      const names = () => rows.allTextContents();
      await rows.nth(1).focus();
      const link = await rows.nth(1).getAttribute('href');
      const top = await page.evaluate<number>('scrollY');
      expect(top).toBeGreaterThan(0);
      // The content is current: it is not loaded again before something arrives.
      expect(requests).toHaveLength(1);
      const before = await names();
      await push();
      await expect.poll(async () => (await names())[2]).toBe(before[1]);
      expect(await focused(page)).toContain(`href="${link}"`);
      expect(await page.evaluate<number>('scrollY')).toBe(top);
      expect(problems).toEqual([]);
    });

    it('refreshes the live list each second while notifications arrive, and other pages every five', async () => {
      const [overview, live] = [await openLive('/'), await openLive('/live')];
      const timer = setInterval(push, 100);
      await expect.poll(() => overview.atMs.length, { timeout: 15_000 }).toBe(2);
      clearInterval(timer);
      const pauseMs = ({ atMs }: typeof live) =>
        ((atMs.at(-1) ?? 0) - (atMs[0] ?? 0)) / (atMs.length - 1);
      expect(pauseMs(overview)).toBeGreaterThan(5_000);
      expect(pauseMs(live)).toBeLessThan(2_500);
    });

    it('reports that the receiver stopped, and is current after a restart', async () => {
      const [overview, live] = [await openLive('/'), await openLive('/live')];
      const pages = [overview.page, live.page];
      const newest = seeded.generator.next(Date.now());
      await seeded.restart(async () => {
        for (const page of pages) {
          const banner = page.locator('.banner');
          await banner.waitFor({ timeout: 5_000 });
          expect(await banner.innerText()).toMatch(
            /^The receiver has not answered since \d\d:\d\d:\d\d UTC\. .*: earshot status$/,
          );
          expect(await banner.locator('code').innerText()).toBe('earshot status');
          expect(await page.locator('main table').first().isVisible()).toBe(true);
        }
      });
      await seeded.push(newest);
      for (const page of pages)
        await page.locator('.banner').waitFor({ state: 'hidden', timeout: 15_000 });
      await live.page.locator('summary', { hasText: newest.Name }).waitFor();
      await overview.page.locator(`td a[href="/products/${newest.Id}"]`).waitFor();
    });

    it('closes the stream while the tab is hidden, and then resumes', async () => {
      const { page, requests } = await openLive('/live');
      const ended = page.waitForEvent('requestfailed');
      // Headless Chromium has no hidden tabs.
      const hide = (hidden: boolean) =>
        page.evaluate(
          `Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true });
         document.dispatchEvent(new Event('visibilitychange'));`,
        );
      await hide(true);
      expect((await ended).url()).toBe(requests[0]);
      const product = seeded.generator.next(Date.now());
      await seeded.push(product);
      expect(requests).toHaveLength(1);
      expect(await page.getByText(product.Name).count()).toBe(0);
      await hide(false);
      await page.locator('summary', { hasText: product.Name }).waitFor({ timeout: 2_000 });
      expect(requests.filter((url) => url.endsWith('/api/live'))).toHaveLength(2);
    });
  },
);
