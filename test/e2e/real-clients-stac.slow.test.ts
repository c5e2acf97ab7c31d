/** Clients of STAC and OGC API Features on a running receiver: stac-js, GDAL, QGIS, and the examples. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import {
  generatedRecords,
  realRecords,
  type TestRecord,
} from '../features/products/index-file/product-context.ts';
import { bareEnvironment } from '../helpers/bare-environment.ts';
import { printedBy } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { installed } from '../helpers/thorough.ts';
import { openServed } from '../receiver/served-context.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');

const hasGdal = installed('/usr/bin/ogrinfo');
const hasQgis = installed('/usr/lib/python3/dist-packages/qgis/core/__init__.py');
const hasGeopandas = installed('/usr/lib/python3/dist-packages/geopandas/__init__.py');

function attributeOf({ Attributes }: TestRecord, name: string): unknown {
  const all: { Name: string; Value: unknown }[] = Array.isArray(Attributes) ? Attributes : [];
  return all.find((one) => one.Name === name)?.Value;
}

const isTyped = (productType: string) => (record: TestRecord) =>
  attributeOf(record, 'productType') === productType;

/** Opens a receiver, and pushes and indexes records. */
async function openFilled(records: readonly TestRecord[]) {
  const served = await openServed({ index: true });
  let pushed = 0;
  const push = async (...some: TestRecord[]) => {
    for (const record of some) {
      pushed += 1;
      const body = JSON.stringify({
        SubscriptionEvent: 'created',
        ProductId: record.Id,
        ProductName: record.Name,
        AckId: `ack-${pushed}`,
        value: record,
      });
      expect(await served.post('/notifications/clients', body)).toBe(200);
    }
    const state = () => served.ask('/odata/v1/Products/$count').then(({ text }) => Number(text));
    await expect.poll(state).toBe(pushed);
  };
  await push(...records);
  return { push, origin: served.consoleUrl ?? '', stac: `${served.consoleUrl}/stac` };
}

/** A scene over the Alps, sensed now, with the cloud cover in percent. */
function sceneNow(record: TestRecord, cloudCover: number): TestRecord {
  const now = new Date().toISOString();
  const attributes: { Name: string }[] = Array.isArray(record.Attributes) ? record.Attributes : [];
  const others = attributes.filter(({ Name }) => Name !== 'cloudCover');
  return {
    ...record,
    ContentDate: { Start: now, End: now },
    Footprint: "geography'SRID=4326;POLYGON((7 46,8 46,8 47,7 47,7 46))'",
    GeoFootprint: undefined,
    Attributes: [...others, { Name: 'cloudCover', Value: cloudCover, ValueType: 'Double' }],
  };
}

/** The parts of stac-js that are used; the package has no types. */
interface StacObject {
  readonly id: string;
  getObjectType(): string;
  getChildLinks(): StacLink[];
  getApiItemsLink(): StacLink;
  getSearchLink(method: string): StacLink;
  getPaginationLinks(): Record<'next', StacLink | null>;
  getAll(): StacObject[];
  getAssetWithRole(role: string): { getAbsoluteUrl(): string } | null;
}
interface StacLink {
  getAbsoluteUrl(): string;
}

it('stac-js walks from the catalogue over collections to items and pages of a search', async () => {
  const records = [...generatedRecords(30, 21), ...realRecords(6)];
  const { stac } = await openFilled(records);
  const { default: create } = await import(createRequire(import.meta.url).resolve('stac-js'));
  const read = async (url: string): Promise<StacObject> => {
    const answer = await fetch(url);
    const json = await answer.json();
    expect(answer.status, `${url}: ${JSON.stringify(json)}`).toBe(200);
    return create(json, false);
  };
  const pagesFrom = async (first: string): Promise<StacObject[]> => {
    const items: StacObject[] = [];
    for (let url: string | undefined = first; url !== undefined; ) {
      const page: StacObject = await read(url);
      expect(page.getObjectType()).toBe('ItemCollection');
      items.push(...page.getAll());
      url = page.getPaginationLinks().next?.getAbsoluteUrl();
    }
    return items;
  };
  const catalogue = await read(stac);
  expect(catalogue.getObjectType()).toBe('Catalog');
  const found: StacObject[] = [];
  for (const link of catalogue.getChildLinks()) {
    const collection = await read(link.getAbsoluteUrl());
    expect(collection.getObjectType()).toBe('Collection');
    found.push(...(await pagesFrom(`${collection.getApiItemsLink().getAbsoluteUrl()}?limit=4`)));
  }
  const ids = records.map(({ Id }) => Id).toSorted();
  expect(found.map(({ id }) => id).toSorted()).toEqual(ids);
  const search = catalogue.getSearchLink('GET').getAbsoluteUrl();
  const filter = encodeURIComponent("constellation = 'sentinel-2'");
  const items = await pagesFrom(`${search}?limit=5&filter=${filter}`);
  const expected = records.filter((one) => attributeOf(one, 'platformShortName') === 'SENTINEL-2');
  expect(items.map(({ id }) => id).toSorted()).toEqual(expected.map(({ Id }) => Id).toSorted());
  const [first] = items;
  const download = first?.getAssetWithRole('data')?.getAbsoluteUrl() ?? '';
  expect(decodeURIComponent(download)).toContain(`Products(${first?.id})/$value`);
});

/** Returns the number of scenes of Sentinel-2 in a box. */
async function countIn(stac: string, bbox: string): Promise<number> {
  const where = `collections=SENTINEL-2.S2MSI1C&limit=1000&bbox=${bbox}`;
  return Object(await (await fetch(`${stac}/search?${where}`)).json()).features.length;
}

it.skipIf(!hasGdal)(
  'GDAL lists collections, and sends its filters and areas to the receiver',
  async () => {
    const records = [...generatedRecords(40, 22), ...realRecords(3)];
    const { stac } = await openFilled(records);
    const scenes = records.filter(isTyped('S2MSI1C'));
    expect(scenes.length).toBeGreaterThan(5);
    const ogrinfo = async (...args: string[]) => {
      const env = { ...bareEnvironment({}), CPL_DEBUG: 'HTTP,OAPIF' };
      const { stdout, stderr } = await run('ogrinfo', ['-ro', `OAPIF:${stac}`, ...args], { env });
      return { stdout, stderr, count: Number(/Feature Count: (\d+)/.exec(stdout)?.[1]) };
    };
    const { stdout } = await ogrinfo();
    expect(stdout).toContain('SENTINEL-2.S2MSI1C (title: SENTINEL-2, S2MSI1C)');
    const layer = (...args: string[]) => ogrinfo('SENTINEL-2.S2MSI1C', '-so', ...args);
    const whole = await layer();
    expect(whole.count).toBe(scenes.length);
    expect(whole.stdout).toMatch(/^eo:cloud_cover: Real /m);
    expect(whole.stdout).toMatch(/^datetime: DateTime /m);
    const covers = scenes
      .map((one) => Number(attributeOf(one, 'cloudCover')))
      .toSorted((a, b) => a - b);
    const limit = covers[Math.floor(covers.length / 2)] ?? 0;
    const clear = await layer('-where', `"eo:cloud_cover" < ${limit}`);
    expect(clear.count).toBe(covers.filter((cover) => cover < limit).length);
    expect(clear.stderr).toContain('filter=eo%3Acloud_cover%20%3C%20');
    expect(clear.stderr).not.toContain('client side');
    const box = ['-20', '30', '20', '60'];
    const inBox = await layer('-spat', ...box);
    expect(inBox.count).toBe(await countIn(stac, box.join(',')));
    expect(inBox.stderr).toContain('bbox=-20,30,20,60');
    expect(inBox.count).toBeLessThan(scenes.length);
  },
);

/** Prints fields, and the numbers of features: all, in a box, and with a filter, as QGIS loads them for a map. */
const qgisScript = `
import os
import sys
from qgis.core import QgsApplication, QgsFeatureRequest, QgsRectangle, QgsVectorLayer
app = QgsApplication([], False)
QgsApplication.setPrefixPath("/usr", True)
app.initQgis()
source = f"url='{sys.argv[1]}' typename='SENTINEL-2.S2MSI1C' restrictToRequestBBOX='1'"
layer = QgsVectorLayer(source, "scenes", "OAPIF")
count = lambda *request: sum(1 for _ in layer.getFeatures(*request))
assert layer.isValid(), layer.error().summary()
print(*[field.name() for field in layer.fields()])
print(count(), count(QgsFeatureRequest(QgsRectangle(-170, -50, 10, 60))), flush=True)
assert layer.setSubsetString('"eo:cloud_cover" < 50'), "the filter was refused"
print(count(), flush=True)
# The libraries of QGIS crash when Python unloads them.
os._exit(0)
`;

it.skipIf(!hasQgis)('QGIS loads a collection, its part in a box, and filters it', async () => {
  const records = generatedRecords(60, 26);
  const { stac } = await openFilled(records);
  const folder = temporaryDirectory();
  const env = {
    ...{ PATH: '/usr/bin:/bin', HOME: folder, XDG_RUNTIME_DIR: folder },
    QT_QPA_PLATFORM: 'offscreen',
  };
  const { stdout } = await run('/usr/bin/python3', ['-c', qgisScript, stac], { env });
  const [fields = '', counts = '', filtered] = stdout.trimEnd().split('\n');
  expect(fields.split(' ')).toEqual(
    expect.arrayContaining(['title', 'eo:cloud_cover', 'grid:code']),
  );
  const scenes = records.filter(isTyped('S2MSI1C'));
  const inBox = await countIn(stac, '-170,-50,10,60');
  expect(counts).toBe(`${scenes.length} ${inBox}`);
  const clear = scenes.filter((one) => Number(attributeOf(one, 'cloudCover')) < 50);
  expect(Number(filtered)).toBe(clear.length);
});

it.skipIf(!hasGeopandas)('the Python example writes a map of the cloud-free scenes', async () => {
  const scenes = generatedRecords(60, 23).filter(isTyped('S2MSI2A'));
  const records = scenes.map((record, i) => sceneNow(record, i % 2 === 0 ? i : 20 + i));
  const { stac } = await openFilled([...records, ...generatedRecords(5, 24)]);
  const folder = temporaryDirectory();
  const script = join(root, 'examples/python/cloud_free.py');
  const env = { PATH: '/usr/bin:/bin', MPLCONFIGDIR: folder };
  const { stdout } = await run('/usr/bin/python3', [script, stac], { cwd: folder, env });
  const clear = records.filter((one) => Number(attributeOf(one, 'cloudCover')) < 20);
  expect(clear.length).toBeGreaterThan(2);
  expect(stdout.trimEnd().split('\n')).toHaveLength(1 + clear.length);
  for (const record of clear) expect(stdout).toContain(`MGRS-${attributeOf(record, 'tileId')}`);
  const picture = join(folder, 'cloud-free.png');
  expect(readFileSync(picture).subarray(1, 4).toString()).toBe('PNG');
  expect(statSync(picture).size).toBeGreaterThan(10_000);
});

it('the TypeScript example acts on each cloud-free product once, also after a restart', async () => {
  const [first, second, third] = generatedRecords(60, 25).filter(isTyped('S2MSI2A'));
  if (first === undefined || second === undefined || third === undefined)
    throw new Error('too few');
  const { push, origin } = await openFilled([sceneNow(first, 5), sceneNow(second, 90)]);
  const folder = temporaryDirectory();
  const script = join(root, 'examples/typescript/app.ts');
  const start = () => {
    const child = spawn(process.execPath, ['--experimental-eventsource', script, origin], {
      cwd: folder,
      env: bareEnvironment({}),
    });
    onTestFinished(() => void child.kill());
    const stop = async () => {
      child.kill();
      await once(child, 'exit');
    };
    return { output: printedBy(child.stdout, child.stderr), stop };
  };
  const names = (output: string) => [...output.matchAll(/S2\w+\.SAFE(?= )/g)].map(([name]) => name);
  const running = start();
  await expect.poll(() => names(running.output()), { timeout: 20_000 }).toEqual([first.Name]);
  const later = sceneNow(third, 10);
  await push(later);
  await expect.poll(() => names(running.output())).toEqual([first.Name, later.Name]);
  const position = () => readFileSync(join(folder, 'position.txt'), 'utf8').trim();
  await expect.poll(position).toBe('3');
  await running.stop();
  const fourth = sceneNow({ ...third, Id: `${third.Id.slice(0, -1)}0`, Name: 'S2A_LATER.SAFE' }, 1);
  await push(fourth);
  const again = start();
  await expect.poll(() => names(again.output()), { timeout: 20_000 }).toEqual(['S2A_LATER.SAFE']);
  await again.stop();
});
