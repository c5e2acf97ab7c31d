/** `/products` and the page of a product, in a real browser over a real store. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  follow,
  hasChromium,
  type OpenedPage,
  openBrowser,
  openPage,
} from '../../../core/page/browser.ts';
import { openSeeded, type SeededReceiver } from '../../../core/page/seeded-receiver.ts';

describe.skipIf(!hasChromium)('/products (needs Chromium)', () => {
  let seeded: SeededReceiver;
  let browser: Browser;

  beforeAll(async () => {
    [seeded, browser] = await Promise.all([openSeeded({ products: 160 }), openBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await seeded?.close();
  });

  // One page for each setting, which is faster than a new one for each test.
  const opened = new Map<boolean, OpenedPage>();
  const open = async (path: string, { javaScriptEnabled = true } = {}) => {
    const url = `${seeded.url}${path}`;
    const former = opened.get(javaScriptEnabled);
    const { page, problems } = former ?? (await openPage(browser, url, { javaScriptEnabled }));
    opened.set(javaScriptEnabled, { page, problems });
    if (former !== undefined) {
      problems.length = 0;
      await page.goto(url);
    }
    return { page, problems, box: page.locator('#filter') };
  };
  const withFilter = (filter: string) => `/products?filter=${encodeURIComponent(filter)}`;
  const load = async (path: string) => {
    const answer = await fetch(new URL(path, seeded.url));
    expect(answer.status).toBe(200);
    return answer.text();
  };
  const countOf = async (filter: string, more = ''): Promise<number> => {
    const search = `count=true&limit=1&filter=${encodeURIComponent(filter)}${more}`;
    return JSON.parse(await load(`/api/products?${search}`)).count;
  };
  const idsOn = (page: Page) =>
    page
      .locator('[data-list] tbody a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')?.split('/').at(-1)));

  it('runs a filter by Ctrl+Enter, and links the names of attributes', async () => {
    const { page, box, problems } = await open('/products');
    await box.fill('Online eq true');
    await page.keyboard.press('Control+Enter');
    await page.waitForURL(/filter=/);
    expect(await page.locator('main').innerText()).toContain(
      `of ${await countOf('Online eq true')} products`,
    );
    const link = page.getByRole('link', { name: 'SENTINEL-2', exact: true });
    expect(await load((await link.getAttribute('href')) ?? '')).toContain('cloudCover');
    expect(problems).toEqual([]);
  });

  it('offers the same products as CSV, GeoJSON, JSON and OData, in the order of the page', async () => {
    const filter = "contains(Name,'MSIL2A')";
    const { page } = await open(`${withFilter(filter)}&orderby=PublicationDate`);
    const ids = await idsOn(page);
    const count = await countOf(filter);
    const anyId = new RegExp(seeded.products.map(({ Id }) => Id).join('|'), 'g');
    for (const name of ['CSV', 'GeoJSON', 'JSON', 'OData']) {
      const link = page.getByRole('link', { name, exact: true });
      const text = await load((await link.getAttribute('href')) ?? '');
      // The page has 50 products, the files have all.
      const found = [...new Set(text.match(anyId))];
      expect({ name, ids: found.slice(0, 50) }).toEqual({ name, ids });
      expect(found).toHaveLength(count);
    }
    const command = await page.locator('.command code').innerText();
    expect(command).toContain(`--filter "${filter}" --orderby "PublicationDate desc"`);
  });

  it('keeps typed text when a condition is clicked, and leads back from a product to the search', async () => {
    const { page, box, problems } = await open(`${withFilter("contains(Name,'S2')")}&since=30d`);
    await box.fill('Online eq true');
    await page.keyboard.press('Escape');
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).not.toBe('TEXTAREA');
    await follow(page, page.locator('.facet').first());
    await page.waitForURL(/add=/);
    const changed = /^Online eq true and Collection.Name eq 'SENTINEL-2'$/;
    expect(await box.inputValue()).toMatch(changed);
    await page.locator('[name=since]').selectOption('any time');
    await page.waitForURL((url) => !url.searchParams.has('since'));
    expect(await box.inputValue()).toMatch(changed);
    await follow(page, page.locator('[data-list] tbody a').first());
    await page.waitForURL(/products\/[0-9a-f-]+$/);
    await follow(page, page.getByRole('link', { name: 'All products' }));
    await page.waitForURL(/products$/);
    expect(problems).toEqual([]);
  });

  describe('without JavaScript', () => {
    const plain = { javaScriptEnabled: false };

    it('writes the filter by a counted value, with the matches of the API, and removes it again', async () => {
      const { page, box } = await open(withFilter('Online eq true'), plain);
      const platform = page
        .locator('.facet')
        .filter({ hasText: /^SENTINEL-2[ABC]/ })
        .first();
      const counted = Number(await platform.locator('.num').innerText());
      await follow(page, platform);
      const filter = await box.inputValue();
      expect(filter).toContain("att/Name eq 'platformSerialIdentifier'");
      expect(await countOf(filter)).toBe(counted);
      await follow(page, page.locator('.facet[aria-pressed]').first());
      expect(await box.inputValue()).toBe('Online eq true');
    });

    it('finds a part of a name, and shows how after a bare word', async () => {
      const { page, box } = await open(withFilter('S2B'), plain);
      const text = await page.locator('main').innerText();
      expect(text).toContain("To search names: contains(Name,'S2B')");
      await follow(page, page.getByRole('link', { name: 'Clear' }));
      await page.locator('[name=name]').fill('S2B');
      await follow(page, page.getByRole('button', { name: 'Run' }));
      expect(await box.inputValue()).toBe("contains(Name,'S2B')");
      const count = await countOf("contains(Name,'S2B')");
      expect(await page.locator('main').innerText()).toContain(`of ${count} products`);
    });

    it('pages through all products once', async () => {
      const { page } = await open('/products?direction=asc', plain);
      const ids = await idsOn(page);
      const next = page.getByRole('link', { name: 'Next page' });
      while ((await next.count()) > 0) {
        await follow(page, next);
        ids.push(...(await idsOn(page)));
      }
      expect(ids).toEqual(seeded.products.map(({ Id }) => Id));
    });
  });

  it('the page of a product shows its state, footprint, notifications and links', async () => {
    const product = seeded.products.findLast(({ Name }) => Name.startsWith('S2'));
    const { page, problems } = await open(`/products/${product?.Id.toUpperCase()}`);
    expect(await page.locator('h1').innerText()).toBe(product?.Name);
    const text = await page.locator('main').innerText();
    expect(text).toMatch(/state\s+exists/);
    expect(text).toMatch(/cloud cover\s+[\d.]+ %/);
    expect(text).toContain(`earshot query --product-id=${product?.Id} --body`);
    expect(await page.locator('.small-map .footprint').count()).toBe(1);
    const notifications = page.getByRole('region', { name: 'Notifications about the product' });
    expect(await notifications.locator('tbody tr').innerText()).toMatch(/created.*alps.*push/s);
    await follow(page, page.getByRole('link', { name: 'Neighbours on the map' }));
    await page.locator('.map-selection a', { hasText: product?.Name ?? '' }).waitFor();
    expect(problems).toEqual([]);
  });
});
