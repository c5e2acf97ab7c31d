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
  const filterOf = (page: Page) => new URL(page.url()).searchParams.get('filter');
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

  it('inserts a condition at the cursor, with its value selected; Ctrl+Enter runs', async () => {
    const { page, box, problems } = await open('/products');
    await page.getByText('Fields and attributes').click();
    await page.getByRole('button', { name: 'Collection/Name', exact: true }).click();
    await page.keyboard.type('SENTINEL-2');
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'cloudCover', exact: true }).click();
    await page.keyboard.type('101');
    const filter = await box.inputValue();
    expect(filter).toMatch(/^Collection\/Name eq 'SENTINEL-2'\s+and Attributes.*Value lt 101\)$/);
    await page.keyboard.press('Control+Enter');
    await page.waitForURL(/filter=/);
    expect(filterOf(page)).toBe(filter);
    expect(await page.locator('main').innerText()).toContain(
      `of ${await countOf(filter)} products`,
    );
    expect(problems).toEqual([]);
  });

  it('offers the same products as CSV, GeoJSON, JSON and OData, in the order of the page', async () => {
    const { page } = await open(`${withFilter("contains(Name,'MSIL2A')")}&orderby=PublicationDate`);
    const ids = await idsOn(page);
    expect(ids.length).toBeGreaterThan(10);
    const content = async (name: string) => {
      const link = page.getByRole('link', { name, exact: true });
      return load((await link.getAttribute('href')) ?? '');
    };
    const count = await countOf("contains(Name,'MSIL2A')");
    // The page has 50 products, the files have all.
    const expectSame = (all: unknown[]) => {
      expect(all.slice(0, 50)).toEqual(ids);
      expect(all).toHaveLength(count);
    };
    const rows = (await content('CSV')).trim().split('\n').slice(1);
    expectSame(rows.map((row) => row.split(',')[1]));
    const { features } = JSON.parse(await content('GeoJSON'));
    expectSame(features.map(({ id }: { id: string }) => id));
    const { products } = JSON.parse(await content('JSON'));
    expectSame(products.map((one: { productId: string }) => one.productId));
    const { value } = JSON.parse(await content('OData'));
    expectSame(value.map(({ Id }: { Id: string }) => Id));
    const command = await page.locator('.command code').innerText();
    expect(command).toBe(
      `earshot query products --filter "contains(Name,'MSIL2A')" --orderby "PublicationDate desc"`,
    );
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
    await follow(page, page.getByRole('link', { name: 'received since' }));
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

    it('runs a filter, and shows the findings of a bad one with the place marked', async () => {
      const { page, box } = await open('/products', plain);
      await box.fill("Collection/Name eq 'SENTINEL-2' and Online = true");
      await follow(page, page.getByRole('button', { name: 'Run' }));
      expect(await page.locator('#filter-findings mark').innerText()).toBe('=');
      expect(await page.locator('main').innerText()).toContain('it was not run');
      await box.fill("Collection/Name eq 'SENTINEL-2'");
      await follow(page, page.getByRole('button', { name: 'Run' }));
      const count = await countOf("Collection/Name eq 'SENTINEL-2'");
      expect(await page.locator('main').innerText()).toContain(`of ${count} products`);
    });

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

    it('limits everything to the period and the subscription of the address', async () => {
      const limits = { since: '12h', subscription: 'alps' };
      const { products } = JSON.parse(await load('/api/products?limit=1000'));
      const recent = products.filter(
        (one: { receivedAt: string }) => Date.parse(one.receivedAt) >= Date.now() - 12 * 3_600_000,
      );
      expect(recent.length).toBeGreaterThan(5);
      expect(recent.length).toBeLessThan(50);
      const { page } = await open(`/products?${new URLSearchParams(limits)}`, plain);
      expect(await idsOn(page)).toEqual(
        recent.map(({ productId }: { productId: string }) => productId),
      );
      expect(await page.locator('main').innerText()).toContain(`of ${recent.length} products`);
      expect(await page.locator('.command code').innerText()).toContain('--since 12h');
      const csv = (await page.getByRole('link', { name: 'CSV' }).getAttribute('href')) ?? '';
      expect((await load(csv)).trim().split('\n')).toHaveLength(recent.length + 1);
      await follow(page, page.locator('.facet').first());
      expect(Object.fromEntries(new URL(page.url()).searchParams)).toMatchObject(limits);
      await follow(page, page.getByRole('link', { name: 'received since' }));
      await follow(page, page.getByRole('link', { name: 'subscription alps' }));
      expect([...new URL(page.url()).searchParams.keys()]).toEqual(['filter']);
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
      await follow(page, page.getByRole('button', { name: 'name contains S2B' }));
      expect(await box.inputValue()).toBe('');
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

  describe('the page of a product', () => {
    it('shows its state, footprint, notifications and links', async () => {
      const product = seeded.products.findLast(({ Name }) => Name.startsWith('S2'));
      const { page, problems } = await open(`/products/${product?.Id}`);
      expect(await page.locator('h1').innerText()).toBe(product?.Name);
      const text = await page.locator('main').innerText();
      expect(text).toMatch(/state\s+exists/);
      expect(text).toMatch(/cloud cover\s+[\d.]+ %/);
      expect(text).toContain(`earshot query --product-id=${product?.Id} --body`);
      expect(await page.locator('.small-map .footprint').count()).toBe(1);
      const notifications = page.getByRole('region', { name: 'Notifications about the product' });
      expect(await notifications.locator('tbody tr').innerText()).toMatch(/created.*alps.*push/s);
      const record = await page.getByRole('link', { name: 'JSON record' }).getAttribute('href');
      expect(JSON.parse(await load(record ?? ''))).toMatchObject({
        Id: product?.Id,
        Name: product?.Name,
      });
      expect(problems).toEqual([]);
    });

    it('finds the product by an id in capitals, with its notifications, and selects it on the map', async () => {
      const product = seeded.products.findLast(({ Name }) => Name.startsWith('S2'));
      const { page, problems } = await open(`/products/${product?.Id.toUpperCase()}`);
      expect(await page.locator('main').innerText()).not.toContain('were pruned');
      await follow(page, page.getByRole('link', { name: 'Neighbours on the map' }));
      const selection = page.locator('.map-selection');
      await selection.getByRole('link', { name: product?.Name ?? '' }).waitFor();
      // The centre of the view is in the footprint.
      await page.locator('.map canvas').focus();
      await page.keyboard.press('Enter');
      expect(await selection.getByRole('link').allTextContents()).toContain(product?.Name);
      await selection.getByRole('button', { name: 'Close' }).click();
      await page.waitForURL((url) => !url.searchParams.has('selected'));
      expect(problems).toEqual([]);
    });

    it('shows a deletion with its cause, as soon as it is indexed', async () => {
      const product = seeded.products.find(({ Name }) => Name.startsWith('S1'));
      if (product === undefined) throw new Error('There is no such product.');
      const deleted = seeded.generator.deleted(product, Date.now());
      expect(await seeded.push(deleted as never, 'deleted')).toBeLessThan(300);
      const { page } = await open(`/products/${product.Id}`);
      const stateText = async () => {
        await page.reload();
        return page.locator('main').innerText();
      };
      await expect.poll(stateText).toMatch(/state\s+deleted/);
      const text = await page.locator('main').innerText();
      expect(text).toContain(deleted.DeletionCause);
      expect(text).toMatch(/deleted[\s\S]*created/);
    });
  });
});
