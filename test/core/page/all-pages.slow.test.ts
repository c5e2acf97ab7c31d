/** Every page in a real browser: accessible, usable at any width and zoom, without JavaScript, and by its URL. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isComplete } from '../../helpers/thorough.ts';
import { hasChromium, openBrowser, openPage } from './browser.ts';
import { openSeeded, type SeededReceiver } from './seeded-receiver.ts';

const state = 'since=7d&subscription=alps';
const paths = [
  ...['/', '/live', '/map', '/products', '/timeliness', '/coverage', '/subscriptions', '/sinks'],
  ...['/alerts', '/quarantine', '/quarantine/2', '/summaries'],
];

/** A phone; a window of 1280 pixels at 200 % and at 80 %. */
const widths = { phone: 375, 'zoom 200 %': 640, 'zoom 80 %': 1600 };

describe.skipIf(!hasChromium)('every page (needs Chromium)', () => {
  let seeded: SeededReceiver;
  let browser: Browser;
  let all: string[] = [];

  beforeAll(async () => {
    [seeded, browser] = await Promise.all([openSeeded({ products: 200 }), openBrowser()]);
    all = [...paths, `/products/${seeded.products.at(-1)?.Id}`];
  });
  afterAll(async () => {
    await browser.close();
    await seeded.close();
  });

  it.each(isComplete ? [...paths, '/products/<id>'] : ['/', '/products/<id>'])(
    '%s has no findings of axe, in light and dark',
    async (path) => {
      const axe = await readFile(createRequire(import.meta.url).resolve('axe-core'), 'utf8');
      const { Id = '' } = seeded.products.at(-1) ?? {};
      const url = `${seeded.url}${path.replace('<id>', Id)}`;
      const { page, problems } = await openPage(browser, url);
      await page.evaluate(axe);
      const found: string[] = [];
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        // The themes differ in colours only.
        const rules = colorScheme === 'light' ? '{}' : "{ runOnly: ['color-contrast'] }";
        found.push(...(await findingsOfAxe(page, rules)).map((one) => `${colorScheme}: ${one}`));
      }
      expect(found).toEqual([]);
      // Also no report of the content security policy.
      expect(problems).toEqual([]);
      await page.context().close();
    },
  );

  it('fits the windows of a phone, a large zoom and a small one', async () => {
    const { page } = await openPage(browser, `${seeded.url}/`);
    const excess: Record<string, number> = {};
    for (const path of all) {
      await page.goto(`${seeded.url}${path}`);
      for (const [name, width] of Object.entries(widths)) {
        await page.setViewportSize({ width, height: 800 });
        const pixels = await page.evaluate<number>(
          'document.documentElement.scrollWidth - innerWidth',
        );
        if (pixels > 0) excess[`${path} ${name}`] = pixels;
      }
    }
    expect(excess).toEqual({});
    await page.context().close();
  });

  it('shows its data without JavaScript', async () => {
    const { page } = await openPage(browser, seeded.url, { javaScriptEnabled: false });
    for (const path of all) {
      await page.goto(`${seeded.url}${path}`);
      expect(await page.locator('h1').count()).toBe(1);
      const text = await page.locator('main').innerText();
      expect(text.length, path).toBeGreaterThan(150);
      expect(text, path).not.toMatch(/undefined|NaN|\[object|Invalid Date/);
      // Buttons without a form need a script, so they are hidden.
      expect(await page.locator('button[type=button]:visible').count(), path).toBe(0);
    }
    await page.context().close();
  });

  it('shows the state of its URL, also after a reload, and passes it on', async () => {
    const { page } = await openPage(browser, seeded.url, { javaScriptEnabled: false });
    for (const path of paths) {
      await page.goto(`${seeded.url}${path}?${state}`);
      const shown = await page.locator('h1, .toolbar').allInnerTexts();
      await page.reload();
      expect(await page.locator('h1, .toolbar').allInnerTexts()).toEqual(shown);
      const period = page.locator('select[name=since] option:checked');
      if ((await period.count()) > 0) expect(await period.textContent()).toBe('last 7 days');
      for (const link of await page.locator('nav a').all()) {
        expect(await link.getAttribute('href')).toContain(state);
      }
    }
    await page.context().close();
  });

  it('reaches every control by Tab, with a visible focus', async () => {
    const { page } = await openPage(browser, `${seeded.url}/products`);
    const expected = await page
      .locator(
        'a[href]:visible, button:visible, select:visible, input:visible, textarea:visible, summary:visible',
      )
      .evaluateAll((found) => found.filter((one) => one.getAttribute('tabindex') !== '-1').length);
    const reached = new Set<string>();
    for (let i = 0; i < 3 * expected; i += 1) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate<[string, string]>(focused);
      if (at[0] === 'BODY') break;
      reached.add(at[0]);
      expect(at[1], at[0]).not.toBe('none');
    }
    expect(reached.size).toBeGreaterThanOrEqual(expected);
    await page.context().close();
  });
});

/** The place of the focused element, and the style of its outline. */
const focused = `(() => {
  const place = [];
  for (let one = document.activeElement; one; one = one.parentElement) {
    place.unshift(one.tagName + (one.parentElement ? [...one.parentElement.children].indexOf(one) : ''));
  }
  const name = document.activeElement === document.body ? 'BODY' : place.join(' ');
  return [name, getComputedStyle(document.activeElement).outlineStyle];
})()`;

interface AxeResult {
  violations: { id: string; nodes: { target: string[] }[] }[];
}

async function findingsOfAxe(page: Page, rules: string): Promise<string[]> {
  const { violations } = await page.evaluate<AxeResult>(`axe.run(${rules})`);
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target }) => `${id} ${target.join(' ')}`),
  );
}
