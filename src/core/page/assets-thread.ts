/**
 * Prepares the files of the web page in a thread of its own, which costs about 100 ms: scripts without types, and
 * land outlines.
 */
import { readdir, readFile } from 'node:fs/promises';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import type { AnyGeometry, Position } from '../../filter/filter-tree.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { polygonsOf } from '../../filter/geometry/ring.ts';

export interface PreparedFile {
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** Files of libraries, by the name in scripts. */
const libraries = {
  preact: 'preact/dist/preact.mjs',
  morphdom: 'morphdom/dist/morphdom-esm.js',
};

const require = createRequire(import.meta.url);

parentPort?.postMessage(await prepareFiles());

async function prepareFiles(): Promise<PreparedFile[]> {
  const texts = new Map<string, string>();
  const sheets = new Map<string, string>();
  for (const folder of workerData as readonly string[]) {
    for (const file of (await readdir(new URL(folder))).toSorted()) {
      const text = await readFile(new URL(`${folder}${file}`), 'utf8');
      if (file.endsWith('.css')) sheets.set(file, text);
      if (/\.(?:js|svg)$/.test(file)) texts.set(file, text);
      if (file.endsWith('.ts')) texts.set(file.replace(/\.ts$/, '.js'), stripTypeScriptTypes(text));
    }
  }
  texts.set('page.css', [...sheets.values()].join('\n'));
  for (const [name, file] of Object.entries(libraries)) {
    texts.set(`${name}.js`, await readFile(pathOfLibrary(file), 'utf8'));
  }
  for (const [name, text] of landFiles()) texts.set(name, text);
  return [...texts].map(([name, text]) => ({
    name,
    bytes: new TextEncoder().encode(name.endsWith('.js') ? forBrowsers(text) : text),
  }));
}

/** Packages may not export their files, so the file is found from the main file of the package. */
function pathOfLibrary(file: string): string {
  const name = file.slice(0, file.indexOf('/'));
  const main = require.resolve(name);
  return main.slice(0, main.lastIndexOf(`/${name}/`) + 1) + file;
}

/** Removes comments, and names the files of imports: browsers know no packages and no TypeScript. */
function forBrowsers(script: string): string {
  return script
    .replaceAll(/^ *(?:\/\*\*?\s[\s\S]*?\*\/|\/\/.*)\n/gm, '')
    .replaceAll(/(\bfrom\s*['"])\.[\w./-]*\/([\w-]+)\.ts(['"])/g, '$1./$2.js$3')
    .replaceAll(/(\bfrom\s*|\bimport\s*)(['"])(preact|morphdom)\2/g, '$1$2./$3.js$2')
    .replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n');
}

type Atlas = Topology<{
  land: GeometryCollection;
  countries: GeometryCollection<{ name: string }>;
}>;

type Line = readonly (readonly number[])[];

/**
 * Returns land outlines, country borders and names, from Natural Earth (public domain) by the package `world-atlas`.
 * JSON: `{ land, borders, names }`; lines are flat integers in hundredths of a degree, each after the first relative to
 * the one before. SVG: the land outline for small pictures, as one path in degrees with the latitude negated.
 */
function landFiles(): Map<string, string> {
  const coarse = readAtlas('110m');
  const files = new Map([
    ['land-coarse.json', JSON.stringify({ ...outlinesOf(coarse), names: [] })],
    ['land.svg', svgOf(ringsOf(coarse))],
  ]);
  const fine = readAtlas('50m');
  return files.set('land-fine.json', JSON.stringify({ ...outlinesOf(fine), names: namesOf(fine) }));
}

function readAtlas(resolution: '110m' | '50m'): Atlas {
  return require(`world-atlas/countries-${resolution}.json`);
}

function outlinesOf(atlas: Atlas) {
  const borders = mesh(atlas, atlas.objects.countries, (one, other) => one !== other);
  return { land: ringsOf(atlas).map(packed), borders: borders.coordinates.map(packed) };
}

/** Returns each name with the place and the width of the largest part of the country. */
function namesOf(atlas: Atlas) {
  return feature(atlas, atlas.objects.countries).features.map(({ properties, geometry }) => {
    const rings = polygonsOf(geometry as AnyGeometry).flatMap(([outer]) => (outer ? [outer] : []));
    return [properties.name, ...labelOf(rings)];
  });
}

/** Returns the centre of the largest ring, and its width. */
function labelOf(rings: readonly Line[]): number[] {
  const parts = rings.map((ring) => {
    let [area, sumX, sumY] = [0, 0, 0];
    for (const [i, [x = 0, y = 0]] of ring.entries()) {
      const [nextX = 0, nextY = 0] = ring[(i + 1) % ring.length] ?? [];
      const part = x * nextY - nextX * y;
      area += part;
      sumX += part * (x + nextX);
      sumY += part * (y + nextY);
    }
    const xs = ring.map(([x = 0]) => x);
    const width = Math.max(...xs) - Math.min(...xs);
    return { area: Math.abs(area), label: [sumX / area / 3, sumY / area / 3, width] };
  });
  const [largest] = parts.toSorted((one, other) => other.area - one.area);
  return (largest?.label ?? []).map((value) => Math.round(value * 100) / 100);
}

/** Returns the outlines, cut at the antimeridian: maps here have planar edges. */
function ringsOf(atlas: Atlas): Line[] {
  return feature(atlas, atlas.objects.land).features.flatMap(({ geometry }) => {
    if (geometry.type !== 'MultiPolygon') return [];
    const coordinates = geometry.coordinates.map((rings) => rings.map((ring) => ring.map(within)));
    return polygonsOf(toGeoJson({ type: 'MultiPolygon', coordinates })).flat();
  });
}

/** Moves a position off the antimeridian: an edge from -180 to 180 degrees would go around the globe (decision 17). */
function within([longitude = 0, latitude = 0]: readonly number[]): Position {
  return [Math.max(-179.9999, Math.min(longitude, 179.9999)), latitude];
}

function packed(line: Line): number[] {
  let [lastX, lastY] = [0, 0];
  return line.flatMap(([longitude = 0, latitude = 0]) => {
    const [x, y] = [Math.round(longitude * 100), Math.round(latitude * 100)];
    const step = [x - lastX, y - lastY];
    [lastX, lastY] = [x, y];
    return step;
  });
}

/** For pictures of a few hundred pixels: in quarter degrees, with relative moves, without islands of a few points. */
function svgOf(rings: readonly Line[]): string {
  const paths = rings.map((ring) => {
    const points = ring.map(([x = 0, y = 0]) => [Math.round(x * 4), Math.round(-y * 4)]);
    const moves = points.slice(1).map(([x = 0, y = 0], i) => {
      const [fromX = 0, fromY = 0] = points[i] ?? [];
      return [x - fromX, y - fromY];
    });
    const steps = moves.filter(([x, y]) => x !== 0 || y !== 0).flat();
    return steps.length > 8 ? `M${points[0]?.join(' ')}l${steps.join(' ')}z` : '';
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-180 -90 360 180"><path id="land" transform="scale(.25)" d="${paths.join('')}"/></svg>`;
}
