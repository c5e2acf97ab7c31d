/** Chromium of the system, for tests of the web page in a real browser. */
import { existsSync } from 'node:fs';
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core';

const executablePath = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find(existsSync);

export const hasChromium = executablePath !== undefined;

export function openBrowser(): Promise<Browser> {
  // Containers usually run as root, where Chromium has no sandbox.
  const args = ['--no-sandbox', '--force-color-profile=srgb'];
  return chromium.launch({ args, ...(executablePath === undefined ? {} : { executablePath }) });
}

export interface OpenedPage {
  page: Page;
  /** Messages of the console, errors of scripts, refusals of the content security policy, requests of other origins. */
  problems: string[];
}

/** Opens a page that notes every problem. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<OpenedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) problems.push(request.url());
  });
  await page.goto(url);
  return { page, problems };
}

/** Clicks what opens another page, and waits for that page. */
export async function follow(page: Page, link: Locator): Promise<void> {
  const loaded = page.waitForEvent('load');
  await link.click();
  await loaded;
}
