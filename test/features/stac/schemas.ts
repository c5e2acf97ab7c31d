/**
 * The validator of the STAC community, with the published schemas of STAC (test data) and of GeoJSON (package
 * geojson-schema) from files.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const schemaFolder = fileURLToPath(
  new URL('../../../../shared/fixtures/stac-schemas', import.meta.url),
);

const extensions = {
  eo: 'v1.1.0',
  grid: 'v1.1.0',
  processing: 'v1.2.0',
  sar: 'v1.0.0',
  sat: 'v1.0.0',
  view: 'v1.0.0',
};

const core = {
  item: ['item', 'basics', 'datetime', 'instrument', 'licensing', 'provider'],
  collection: ['collection'],
  catalog: ['catalog'],
};

const packaged = createRequire(import.meta.url);

/** Local files by address, so that a validator needs no network. */
const schemaMap: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['Feature', 'Geometry'].map((name) => [
      `https://geojson.org/schema/${name}.json`,
      packaged.resolve(`geojson-schema/${name}.json`),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(extensions).map(([name, version]) => [
      `https://stac-extensions.github.io/${name}/${version}/schema.json`,
      join(schemaFolder, name, version, 'schema.json'),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(core).flatMap(([part, names]) =>
      names.map((name) => {
        const path = `${part}-spec/json-schema/${name}.json`;
        return [
          `https://schemas.stacspec.org/v1.0.0/${path}`,
          join(schemaFolder, 'stac-spec/v1.0.0', path),
        ];
      }),
    ),
  ),
};

interface Report {
  id: string;
  valid: boolean;
  results: object;
}

type Validate = (
  data: readonly object[],
  config: { schemaMap: typeof schemaMap; loader: (path: string) => Promise<unknown> },
) => Promise<{ children: Report[] }>;

// The package has no types.
const validate = packaged('stac-node-validator') as Validate;

/** Validates items, collections or catalogues; returns the faults of the invalid ones, and the number of all. */
export async function validateStac(objects: readonly object[]) {
  const loader = async (path: string) => JSON.parse(readFileSync(path, 'utf8'));
  const { children } = await validate(structuredClone(objects), { schemaMap, loader });
  const faults = children.filter(({ valid }) => !valid);
  return { faults: faults.map(({ id, results }) => ({ id, results })), checked: children.length };
}
