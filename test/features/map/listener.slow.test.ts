/** The map in a real browser: pixels of footprints, areas as filters, arrivals, state of the URL. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Position, Ring } from '../../../src/filter/filter-tree.ts';
import { extentOf } from '../../../src/filter/geometry/ring.ts';
import { hasChromium, openBrowser, openPage } from '../../core/page/browser.ts';
import {
  openSeeded,
  type PublishedProduct,
  type SeededReceiver,
} from '../../core/page/seeded-receiver.ts';
import { box, parallel, ring } from '../../filter/geometry/places.ts';

/** Far from all footprints of the history: the tests show only these products. */
const mine = "startswith(Name,'MAP_')";

describe.skipIf(!hasChromium)('the map (needs Chromium)', () => {
  let seeded: SeededReceiver;
  let browser: Browser;
  const problems: string[] = [];
  /** A repeated test needs a place without the product of the first run. */
  let arrivals = 0;

  /** Opens the map with a filter, and waits until it shows its footprints. */
  const openMap = async (state: Record<string, string>, options = {}) => {
    const search = new URLSearchParams({ filter: mine, ...state });
    const opened = await openPage(browser, `${seeded.url}/map?${search}`, options);
    if (!('javaScriptEnabled' in options)) await untilDrawn(opened.page);
    problems.push(...opened.problems);
    return opened.page;
  };
  const untilDrawn = (page: Page) =>
    page.locator('.map-readout', { hasText: 'footprint' }).waitFor({ state: 'attached' });
  /** Publishes a product with a footprint, and waits until it is indexed. */
  const publish = async (name: string, area: Ring, sensedHoursAgo = 2) => {
    const Start = new Date(Date.now() - sensedHoursAgo * 3_600_000).toISOString();
    const product = {
      ...withFootprint(seeded.generator.next(Date.now() - 60_000), `MAP_${name}`, area),
      ContentDate: { Start, End: Start },
    };
    expect(await seeded.push(product)).toBe(200);
    const isIndexed = async () => {
      if ((await productIds(`Name eq 'MAP_${name}'`)).length !== 1) throw new Error('not indexed');
    };
    await vi.waitFor(isIndexed, { interval: 20, timeout: 10_000 });
    return product;
  };
  const productsOf = async (filter: string, more: Record<string, string> = {}) => {
    const search = new URLSearchParams({ filter, limit: '1000', ...more });
    const answer = await fetch(`${seeded.url}/api/products?${search}`);
    type Answer = { products: { productId: string; productName: string }[] };
    return ((await answer.json()) as Answer).products;
  };
  const productIds = async (...query: Parameters<typeof productsOf>) =>
    (await productsOf(...query)).map(({ productId }) => productId).sort();

  beforeAll(async () => {
    [seeded, browser] = await Promise.all([openSeeded({ products: 300 }), openBrowser()]);
    await publish('pacific', square(176, -20, 188, -10));
    await publish('pole', parallel(82));
    await publish('south', square(20, -78, 80, -70));
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });
  afterAll(async () => {
    await browser.close();
    await seeded.close();
  });

  test('draws a footprint across the antimeridian on both sides, and nowhere else', async () => {
    const page = await openMap({ view: '180,0,3' });
    const inside = ring('177 -15, 179.5 -15, -179.5 -15, -173 -15');
    const outside = ring('170 -15, -165 -15, 178 -5, -175 -25');
    await expectDrawn(page, { inside, outside }, flatPixel([180, 0], 3));
    // No outline along the cut: the pixels there have the colour of the area, under a line of the grid.
    const [seam, area] = await pixels(page, ring('180 -15, 178 -13.3'), flatPixel([180, 0], 3));
    expect(distanceOf(seam, area)).toBeLessThan(30);
  });

  test('draws a footprint around a pole as an area on the arctic map', async () => {
    const page = await openMap({ projection: 'arctic', view: '0,90,3' });
    const inside = ring('0 89.9, 40 84, -100 85, 179 84');
    const outside = ring('160 79, -100 79, 178 80');
    await expectDrawn(page, { inside, outside }, polarPixel(1, 3));
  });

  test('turns a drawn box into a filter with the results of --bbox', async () => {
    const state = { view: '0,0,3', since: '7d' };
    const page = await openMap({ ...state, filter: "Collection/Name eq 'SENTINEL-2'" });
    await page.getByRole('button', { name: 'Box' }).click();
    const at = await canvasPixels(page, flatPixel([0, 0], 3), ring('-60 30, 70 -30'));
    await drag(page, at);
    await page.waitForURL(/Intersects/);
    const filter = new URL(page.url()).searchParams.get('filter') ?? '';
    expect(filter).toMatch(/^Collection\/Name eq 'SENTINEL-2' and OData.CSC.Intersects\(area=/);
    const bbox = boundsOf(filter).join(',');
    const sameBox = await productIds("Collection/Name eq 'SENTINEL-2'", { bbox });
    expect(sameBox.length).toBeGreaterThan(5);
    expect(await productIds(filter)).toEqual(sameBox);
    await untilDrawn(page);
    expect(await page.locator('.map-readout').textContent()).toBe(`${sameBox.length} footprints`);
  });

  test('turns a drawn polygon into a filter, with keys to undo and finish', async () => {
    const page = await openMap({ view: '30,-42,3' });
    await page.getByRole('button', { name: 'Polygon' }).click();
    const places = ring('10 -68, 70 -68, 5 -10, 50 -79');
    const corners = await canvasPixels(page, flatPixel([30, -42], 3), places);
    for (const { x, y } of corners.slice(0, 3)) await page.mouse.click(x, y);
    await page.keyboard.press('Backspace');
    await page.mouse.click(corners[3]?.x ?? 0, corners[3]?.y ?? 0);
    await page.keyboard.press('Enter');
    await page.waitForURL(/Intersects/);
    const filter = new URL(page.url()).searchParams.get('filter') ?? '';
    expect((await productIds(filter)).length).toBe(1);
    expect(filter).not.toContain(' -10.');
  });

  test('shows a product that arrives, within two seconds', async () => {
    arrivals += 1;
    const west = -31 + 6 * (arrivals - 1);
    const page = await openMap({ view: '-30,-30,3' });
    const spot: Position[] = [[west + 1.5, -29.5]];
    await expectDrawn(page, { inside: [], outside: spot }, flatPixel([-30, -30], 3));
    const product = withFootprint(
      seeded.generator.next(Date.now()),
      `MAP_new_${arrivals}`,
      square(west, -31, west + 3, -28),
    );
    const sentAt = performance.now();
    expect(await seeded.push(product)).toBe(200);
    await expectDrawn(page, { inside: spot, outside: [] }, flatPixel([-30, -30], 3));
    expect(performance.now() - sentAt).toBeLessThan(2_000);
    // The list follows.
    await page.locator('table .name', { hasText: `MAP_new_${arrivals}` }).waitFor();
  });

  test('keeps view, projection and colour in the URL, so that a reload shows the same', async () => {
    const page = await openMap({ projection: 'antarctic', since: '7d' });
    await page.locator('.map canvas').focus();
    for (const key of ['+', '+', 'ArrowUp', 'ArrowLeft']) await page.keyboard.press(key);
    await page.getByLabel('colour').selectOption('cloud');
    await page.waitForURL(/colour=cloud/);
    await page.waitForURL(/view=-?\d/);
    const state = () => new URL(page.url()).searchParams;
    await expect.poll(() => state().get('view'), { interval: 50 }).not.toBe(null);
    const before = state().get('view');
    await page.reload();
    await untilDrawn(page);
    expect(await page.locator('.map-legend h2').textContent()).toBe('Cloud cover');
    const kept = { projection: 'antarctic', colour: 'cloud', since: '7d', view: before };
    expect(Object.fromEntries(state())).toMatchObject(kept);
  });

  test('selects by click, by keyboard and by the URL, and shows names without direction marks', async () => {
    const product = await publish('\u202ename', square(-140, -40, -130, -30));
    const page = await openMap({ selected: product.Id, view: '-135,-35,4' });
    const panel = page.locator('.map-selection');
    expect(await panel.getByRole('link').allTextContents()).toEqual(['MAP_\\u202ename']);
    await panel.getByRole('button', { name: 'Close' }).click();
    expect(await panel.isVisible()).toBe(false);
    expect(new URL(page.url()).searchParams.get('selected')).toBe(null);
    await page.locator('.map canvas').focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(`**selected=${product.Id}*`);
    await panel.getByRole('button', { name: 'Close' }).click();
    const [corner] = await canvasPixels(page, flatPixel([-135, -35], 4), [[-139, -39]]);
    await page.mouse.click(corner?.x ?? 0, corner?.y ?? 0);
    expect(await panel.getByRole('link').getAttribute('href')).toMatch(/\/products\/[\w-]+$/);
    expect(await page.locator('.map-readout').textContent()).toContain('MAP_\\u202ename');
  });

  test('lists the same products as text, also without JavaScript', async () => {
    const page = await openMap({}, { javaScriptEnabled: false });
    const names = await page.locator('table .name').allTextContents();
    const listed = (await productsOf(mine)).map(({ productName }) =>
      productName.replace('\u202e', '\\u202e'),
    );
    expect(names.toSorted()).toEqual(listed.toSorted());
    expect(await page.locator('svg .footprint').count()).toBe(names.length);
  });

  describe('with a small footprint below many large ones', () => {
    const count = 22;
    const [small = [0, 0], large = [0, 0], adjacent = [0, 0]] = ring('-99 -49, -93 -43, -89 -39');
    const toPixel = flatPixel([-95, -45], 5);
    const namesAt = async (page: Page, position: Position) => {
      const [at] = await canvasPixels(page, toPixel, [position]);
      await page.mouse.click(at?.x ?? 0, at?.y ?? 0);
      return page.locator('.map-selection a').allTextContents();
    };

    beforeAll(async () => {
      await publish('small', square(-100, -50, -98, -48), 1);
      for (let i = 0; i < count; i += 1) {
        await publish(`large_${i}`, square(-101, -51, -91 + i / 100, -41), 40);
      }
    });

    test('paints the small one on top, lists all at a click, and switches a class of the legend off and on', async () => {
      const page = await openMap({ colour: 'age', view: '-95,-45,5' });
      const seen = () => pixels(page, [small, large, adjacent], toPixel);
      const darkness = async () => {
        const [, onLarge, outside] = await seen();
        return distanceOf(onLarge, outside);
      };
      // A stack of fills would be as dark as the outline.
      await expect.poll(darkness).toBeLessThan(60);
      expect(await darkness()).toBeGreaterThan(8);
      const [onSmall, onLarge] = await seen();
      expect(distanceOf(onSmall, onLarge)).toBeGreaterThan(20);
      const names = await namesAt(page, small);
      expect(names).toHaveLength(count + 1);
      expect([names[0], names.at(-1)]).toEqual([`MAP_large_${count - 1}`, 'MAP_small']);
      // It covers the legend.
      await page.locator('.map-selection').getByRole('button', { name: 'Close' }).click();
      const box = () => page.getByRole('checkbox', { name: '24 h to 3 d' });
      await box().uncheck();
      await page.waitForURL(/hidden=/);
      await expectDrawn(page, { inside: [small], outside: [large] }, toPixel);
      await page.reload();
      await untilDrawn(page);
      await expectDrawn(page, { inside: [small], outside: [large] }, toPixel);
      expect(await namesAt(page, small)).toEqual(['MAP_small']);
      await box().check();
      await expectDrawn(page, { inside: [small, large], outside: [] }, toPixel);
      expect(new URL(page.url()).searchParams.get('hidden')).toBe(null);
    });
  });

  test('causes no error, warning or request of another origin', () => {
    expect(problems).toEqual([]);
  });
});

/** A function from a position to a pixel, relative to the centre of the canvas. */
type ToPixel = (position: Position) => readonly [number, number];

/** Plate carrée around a centre, by the definition of the zoom in the URL. */
function flatPixel([longitude, latitude]: Position, zoom: number): ToPixel {
  const scale = (256 * 2 ** zoom) / 360;
  return ([x, y]) => {
    const dx = x - longitude - 360 * Math.round((x - longitude) / 360);
    return [dx * scale, (latitude - y) * scale];
  };
}

/** Polar stereographic around a pole; a degree at the pole has the scale of the zoom. */
function polarPixel(sign: 1 | -1, zoom: number): ToPixel {
  const scale = (256 * 2 ** zoom) / 360;
  return ([longitude, latitude]) => {
    const distance = (360 / Math.PI) * Math.tan(((90 - sign * latitude) * Math.PI) / 360);
    const angle = (longitude * Math.PI) / 180;
    return [distance * Math.sin(angle) * scale, sign * distance * Math.cos(angle) * scale];
  };
}

/** Reads the colours at positions, as `r,g,b`. */
async function pixels(
  page: Page,
  positions: readonly Position[],
  toPixel: ToPixel,
): Promise<string[]> {
  const offsets = JSON.stringify(positions.map(toPixel));
  return page.evaluate(`new Promise((resolve) => requestAnimationFrame(resolve)).then(() => {
    const canvas = document.querySelector('canvas');
    const { width, height } = canvas;
    // A copy: reading the canvas itself repeatedly is reported as slow.
    const copy = new OffscreenCanvas(width, height).getContext('2d');
    copy.drawImage(canvas, 0, 0);
    return ${offsets}.map(([x, y]) => {
      const at = [Math.round(width / 2 + x), Math.round(height / 2 + y)];
      return copy.getImageData(...at, 1, 1).data.slice(0, 3).join(',');
    });
  })`);
}

/** True where the colour is neither that of the sea nor of the land: the map is drawn with and without footprints. */
async function colouredAt(
  page: Page,
  positions: readonly Position[],
  toPixel: ToPixel,
): Promise<boolean[]> {
  const plain: string[] = await page.evaluate(`['sea', 'land'].map((name) => {
    const sample = document.body.appendChild(document.createElement('span'));
    sample.className = 'map-' + name;
    const { color } = getComputedStyle(sample);
    sample.remove();
    return color.match(/\\d+/g).join(',');
  })`);
  const seen = await pixels(page, positions, toPixel);
  return seen.map((text) => plain.every((colour) => distanceOf(text, colour) > 8));
}

/** Largest difference of two colours, each `r,g,b`. */
function distanceOf(one = '', other = ''): number {
  const [a, b] = [one, other].map((text) => text.split(',').map(Number));
  return Math.max(...(a ?? []).map((value, i) => Math.abs(value - (b?.[i] ?? 0))));
}

/** Expects footprints at some positions, and none at others, when the map is drawn. */
async function expectDrawn(
  page: Page,
  { inside, outside }: { inside: readonly Position[]; outside: readonly Position[] },
  toPixel: ToPixel,
): Promise<void> {
  const expected = [...inside.map(() => true), ...outside.map(() => false)];
  const found = () => colouredAt(page, [...inside, ...outside], toPixel);
  await expect.poll(found, { interval: 50, timeout: 10_000 }).toEqual(expected);
}

async function canvasPixels(page: Page, toPixel: ToPixel, positions: readonly Position[]) {
  const box = await page.locator('.map canvas').boundingBox();
  if (box === null) throw new Error('The canvas is not visible.');
  return positions.map((position) => {
    const [x, y] = toPixel(position);
    return { x: box.x + box.width / 2 + x, y: box.y + box.height / 2 + y };
  });
}

async function drag(page: Page, [from, to]: readonly { x: number; y: number }[]): Promise<void> {
  if (from === undefined || to === undefined) throw new Error('A drag has two ends.');
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 4 });
  await page.mouse.up();
}

/** West, south, east, north of the only polygon of a filter. */
function boundsOf(filter: string): number[] {
  const [, text = ''] = /POLYGON\(\((.*?)\)\)/.exec(filter) ?? [];
  const { west, south, east, north } = extentOf(ring(text.replaceAll(/, */g, ', ')).flat());
  return [west, south, east, north];
}

/** A closed ring; longitudes beyond 180 continue on the other side. */
const square = (...[west, south, east, north]: [number, number, number, number]) =>
  box(west, south, east, north).map(([x, y]): Position => [x > 180 ? x - 360 : x, y]);

function withFootprint(product: PublishedProduct, name: string, area: Ring): PublishedProduct {
  const text = area.map((place) => place.join(' ')).join(',');
  return {
    ...product,
    Name: name,
    Footprint: `geography'SRID=4326;POLYGON((${text}))'`,
    GeoFootprint: { type: 'Polygon', coordinates: [area] },
  } as PublishedProduct;
}
