/** Takes the pictures of the web page for the documentation, in Chromium. */
import { writeFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from './browser.ts';
import { openSeeded } from './seeded-receiver.ts';
import { showcase, showcaseNowUs } from './showcase.ts';

interface Picture {
  path: string;
  theme: 'light' | 'dark';
  /** Size of the window, in CSS pixels. */
  width: number;
  height: number;
  /** Prepares the page: opens a row, for example. */
  act?: (page: Page) => Promise<void>;
}

/** Pictures of the documentation, by file name in `docs/page`. */
const pictures: Readonly<Record<string, Picture>> = {
  overview: { path: '/', theme: 'light', width: 1280, height: 1085 },
  map: { path: '/map', theme: 'dark', width: 1280, height: 760 },
  arctic: {
    path: "/map?projection=arctic&colour=cloud&since=7d&filter=Collection/Name eq 'SENTINEL-2'",
    ...{ theme: 'dark', width: 1280, height: 800 },
  },
  live: {
    path: '/live',
    ...{ theme: 'light', width: 1280, height: 860 },
    act: async (page) => {
      await page.locator('[data-list] summary').nth(2).click();
    },
  },
  products: {
    path: "/products?filter=Collection/Name eq 'SENTINEL-2'",
    ...{ theme: 'light', width: 1280, height: 1010 },
  },
  timeliness: { path: '/timeliness', theme: 'light', width: 1280, height: 840 },
  coverage: { path: '/coverage?subscription=land', theme: 'dark', width: 1280, height: 900 },
  alerts: { path: '/alerts', theme: 'light', width: 1280, height: 760 },
};

/** Writes the pictures of the documentation. */
export async function run({ stdout }: { stdout: NodeJS.WritableStream }): Promise<void> {
  const [seeded, browser] = await Promise.all([openSeeded({ plan: showcase }), openBrowser()]);
  try {
    for (const [name, picture] of Object.entries(pictures)) {
      const image = await take(browser, seeded.url, picture);
      writeFileSync(new URL(`../../../docs/page/${name}.webp`, import.meta.url), image);
      stdout.write(`${name}.webp: ${Math.ceil(image.length / 1_000)} kB\n`);
    }
  } finally {
    await browser.close();
    await seeded.close();
  }
}

async function take(
  browser: Browser,
  url: string,
  { path, theme, width, height, act }: Picture,
): Promise<Buffer> {
  const context = await browser.newContext({
    ...{ viewport: { width, height }, colorScheme: theme },
    ...{ deviceScaleFactor: 1.5, reducedMotion: 'reduce' },
  });
  const page = await context.newPage();
  await page.clock.setFixedTime(showcaseNowUs / 1_000);
  await page.goto(url + path);
  if (path.startsWith('/map')) await untilPainted(page);
  await act?.(page);
  // Playwright itself writes no WebP, which is a third of a PNG.
  const devtools = await context.newCDPSession(page);
  const { data } = await devtools.send('Page.captureScreenshot', {
    ...{ format: 'webp', quality: 80, captureBeyondViewport: false },
  });
  await context.close();
  return Buffer.from(data, 'base64');
}

/** Resolves when the footprints are loaded, and the map does not change any more. */
async function untilPainted(page: Page): Promise<void> {
  await page.locator('.map-readout', { hasText: /\d footprints/ }).waitFor();
  await page.waitForLoadState('networkidle');
  const image = () => page.locator('.map canvas').screenshot();
  let last = await image();
  for (let next = await image(); !next.equals(last); next = await image()) last = next;
}
