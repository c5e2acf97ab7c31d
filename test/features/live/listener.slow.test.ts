/** The page `/live` in Chromium, with a receiver and real pushes. */
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { hasChromium, openBrowser, openPage } from '../../core/page/browser.ts';
import { openSeeded, type SeededReceiver } from '../../core/page/seeded-receiver.ts';

describe.skipIf(!hasChromium)('the live list (needs Chromium)', { timeout: 30_000 }, () => {
  let browser: Browser;
  let seeded: SeededReceiver;
  beforeAll(async () => {
    [browser, seeded] = await Promise.all([openBrowser(), openSeeded({ products: 60 })]);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await seeded?.close();
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });
  const open = async (search = '', options = {}) => {
    const opened = await openPage(browser, `${seeded.url}/live${search}`, options);
    opened.page.setDefaultTimeout(5_000);
    return opened;
  };
  const rows = (page: Page) => page.locator('[data-list] tbody > tr');
  const named = (page: Page, name: string) =>
    rows(page).first().locator('summary', { hasText: name });
  const push = async () => {
    const product = seeded.generator.next(Date.now());
    expect(await seeded.push(product)).toBe(200);
    return product;
  };
  const violations = async (page: Page) => {
    await page.evaluate(axe.source);
    const found = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
      'axe.run()',
    );
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
  };

  it('shows a push within two seconds, with its product, and nothing twice', async () => {
    const { page, problems } = await open();
    const before = await rows(page).count();
    const beganMs = performance.now();
    const product = await push();
    const first = rows(page).first();
    await named(page, product.Name).waitFor();
    expect(performance.now() - beganMs).toBeLessThan(2_000);
    await expect.poll(() => first.textContent()).toMatch(/created.* (?:ms|s|min|h)alps$/);
    expect(await rows(page).count()).toBe(before + 1);
    expect(await violations(page)).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('pauses, counts the new ones, and resumes', async () => {
    const { page } = await open();
    await page.getByRole('button', { name: 'Pause' }).click();
    const first = await rows(page).first().innerText();
    const [one, other] = [await push(), await push()];
    await page.getByRole('button', { name: 'Resume (2 new)' }).waitFor();
    expect(await rows(page).first().innerText()).toBe(first);
    await page.getByRole('button', { name: 'Resume (2 new)' }).click();
    await named(page, other.Name).waitFor();
    expect(await rows(page).nth(1).innerText()).toContain(one.Name);
    await page.getByRole('button', { name: 'Pause' }).waitFor();
  });

  it('opens a row, with all fields, the body, and texts to copy', async () => {
    const { page, problems } = await open('', {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const product = await push();
    await named(page, product.Name).waitFor();
    await rows(page).first().locator('summary').click();
    const details = page.locator('[data-list] details[open]');
    const text = await details.innerText();
    for (const part of ['position', 'ackId', 'subscriptionId', 'timesSeen', product.Id])
      expect(text).toContain(part);
    const link = details.getByRole('link', { name: 'Body' });
    const href = new URL((await link.getAttribute('href')) ?? '', page.url());
    expect(await (await fetch(href)).json()).toMatchObject({
      productId: product.Id,
      body: expect.stringContaining(`"ProductId":"${product.Id}"`),
    });
    const clipboard = () => page.evaluate<string>('navigator.clipboard.readText()');
    const copied = async (name: string, text: RegExp) => {
      await details.getByRole('button', { name }).click();
      await expect.poll(clipboard).toMatch(text);
      return clipboard();
    };
    expect(await copied('Copy id', /^[\da-f-]{36}$/)).toBe(product.Id);
    const query = await copied('Copy query command', /^earshot query/);
    expect(query).toBe(`earshot query --product-id=${product.Id}`);
    const [, url = ''] = /^curl '(\S+)'$/.exec(await copied('Copy curl command', /^curl/)) ?? [];
    expect(url).toBe(href.href);
    // The open row stays in its place.
    const later = await push();
    await page.getByRole('button', { name: 'Resume (1 new)' }).waitFor();
    expect(await page.getByText(later.Name).count()).toBe(0);
    expect(await violations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Resume (1 new)' }).click();
    await named(page, later.Name).waitFor();
    expect(await details.count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('filters by event, subscription and $filter, also what arrives', async () => {
    const { page } = await open('?since=7d');
    await page.getByLabel('event').selectOption('created');
    await page.waitForURL(/event=created/);
    await page.getByLabel('$filter').fill("Collection/Name eq 'SENTINEL-2'");
    await page.keyboard.press('Enter');
    await page.waitForURL(/filter=/);
    expect(new URL(page.url()).searchParams.get('since')).toBe('7d');
    const before = await rows(page).count();
    expect(before).toBeGreaterThan(3);
    const products = [];
    for (let i = 0; i < 6; i += 1) products.push(await push());
    const matching = products.filter(({ Name }) => Name.startsWith('S2'));
    await expect.poll(() => rows(page).count()).toBe(before + matching.length);
    const shown = await rows(page).locator('.product-name').allTextContents();
    expect(shown.filter((name) => !name.startsWith('S2'))).toEqual([]);
    await page.goto(`${seeded.url}/live?subscription=nowhere`);
    await page.getByText('No notification in this period matches.').waitFor();
    expect(await violations(page)).toEqual([]);
    await page.goto(`${seeded.url}/live?filter=Nme%20eq%205`);
    await page.getByText('Did you mean Name?').waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it('shows texts that would act as text', async () => {
    const product = seeded.generator.next(Date.now());
    const name = '<img src=x onerror="document.title=1">\u202egpj\u001b[31m';
    await seeded.push({ ...product, Id: "x'; touch /tmp/x #", Name: name });
    const { page, problems } = await open('', {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const shown = name.replace('\u202e', '\\u202e').replace('\u001b', '\\u001b');
    await named(page, shown).click();
    await page.locator('[data-list] details[open] dd', { hasText: 'onerror' }).waitFor();
    expect(await page.textContent('main')).not.toMatch(/\u202e/);
    await page.getByRole('button', { name: 'Copy query command' }).click();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(
      `earshot query --product-id="x'; touch /tmp/x #"`,
    );
    expect(await page.title()).toBe('Live · earshot');
    expect(problems).toEqual([]);
  });
});
