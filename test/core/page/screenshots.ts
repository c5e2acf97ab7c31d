/** Takes pictures of the web page in Chromium, for the documentation and for review. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { navigation } from '../../helpers/pages.ts';
import { openBrowser } from './browser.ts';
import { openSeeded } from './seeded-receiver.ts';
import { showcase, showcaseNowUs } from './showcase.ts';

interface Picture {
  path: string;
  theme: 'light' | 'dark';
  /** Size of the window, in CSS pixels. */
  width: number;
  height: number;
  /** The whole page, not only the window. */
  whole?: boolean;
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
      await page.locator('#live button.name').nth(2).click();
      await page.locator('#live .detail:not(:has-text("Loading"))').waitFor();
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

const themes = ['light', 'dark'] as const;

/** Windows for review: two desktops, one at a zoom of 200 %, and a phone. */
const windows = [
  [1280, 900],
  [1400, 900],
  [640, 450],
  [390, 844],
] as const;

/**
 * Writes the pictures of the documentation. With a folder in `argv`, writes each page there in both themes and all sizes
 * instead.
 */
export async function run(
  [folder]: readonly string[],
  { stdout }: { stdout: NodeJS.WritableStream },
): Promise<number> {
  const target = folder ?? fileURLToPath(new URL('../../../docs/page/', import.meta.url));
  mkdirSync(target, { recursive: true });
  const [seeded, browser] = await Promise.all([openSeeded({ plan: showcase }), openBrowser()]);
  try {
    const product = seeded.products.findLast(({ Name }) => Name.includes('MSIL2A'));
    const chosen =
      folder === undefined ? pictures : reviewed([`/products/${product?.Id}`, '/no-such-page']);
    for (const [name, picture] of Object.entries(chosen)) {
      const image = await take(browser, seeded.url, picture);
      writeFileSync(join(target, `${name}.webp`), image);
      stdout.write(`${name}.webp: ${Math.ceil(image.length / 1_000)} kB\n`);
    }
    return 0;
  } finally {
    await browser.close();
    await seeded.close();
  }
}

function reviewed(otherPaths: readonly string[]): Record<string, Picture> {
  const paths = [...navigation.map(({ path }) => path), ...otherPaths];
  const all = paths.flatMap((path) =>
    themes.flatMap((theme) =>
      windows.map(([width, height]) => {
        const page = path.split('/').slice(1, 3).join('-').slice(0, 13) || 'overview';
        return [`${page}-${theme}-${width}`, { path, theme, width, height, whole: true }] as const;
      }),
    ),
  );
  return Object.fromEntries(all);
}

async function take(
  browser: Browser,
  url: string,
  { path, theme, width, height, whole = false, act }: Picture,
): Promise<Buffer> {
  const context = await browser.newContext({
    ...{ viewport: { width, height }, colorScheme: theme },
    ...{ deviceScaleFactor: whole ? 1 : 1.5, reducedMotion: 'reduce' },
  });
  const page = await context.newPage();
  await page.clock.setFixedTime(showcaseNowUs / 1_000);
  await page.goto(url + path);
  if (path.startsWith('/map')) await untilPainted(page);
  await act?.(page);
  // Playwright itself writes no WebP, which is a third of a PNG.
  const devtools = await context.newCDPSession(page);
  const { data } = await devtools.send('Page.captureScreenshot', {
    ...{ format: 'webp', quality: 80, captureBeyondViewport: whole },
    ...(whole ? { clip: { ...(await sizeOf(page)), x: 0, y: 0, scale: 1 } } : {}),
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

/** A picture as WebP has at most 16,383 rows. */
function sizeOf(page: Page): Promise<{ width: number; height: number }> {
  return page.evaluate(
    'const { scrollWidth: width, scrollHeight } = document.documentElement; ({ width, height: Math.min(scrollHeight, 16_000) })',
  );
}
