/**
 * The validator of the STAC community, with the published schemas of STAC (test data) and of GeoJSON (package
 * geojson-schema) from files.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const schemaFolder = fileURLToPath(
  new URL('../../../../shared/fixtures/stac-schemas', import.meta.url),
);

const packaged = createRequire(import.meta.url);

/** Returns local files by their address, so that a validator needs no network. */
function schemaFiles(): Record<string, string> {
  const names = readdirSync(schemaFolder, { recursive: true, encoding: 'utf8' });
  const files = [
    ...names.filter((name) => name.endsWith('.json')).map((name) => join(schemaFolder, name)),
    ...['Feature', 'Geometry'].map((name) => packaged.resolve(`geojson-schema/${name}.json`)),
  ];
  return Object.fromEntries(files.map((file) => [addressIn(file), file]));
}

function addressIn(file: string): string {
  return JSON.parse(readFileSync(file, 'utf8')).$id.replace(/#$/, '');
}

interface Report {
  id: string;
  valid: boolean;
  results: object;
}

type Validate = (
  data: readonly object[],
  config: { schemaMap: Record<string, string>; loader: (path: string) => Promise<unknown> },
) => Promise<{ children: Report[] }>;

// The package has no types.
const validate = packaged('stac-node-validator') as Validate;

/** Validates items, collections or catalogues; returns the faults of the invalid ones, and the number of all. */
export async function validateStac(objects: readonly object[]) {
  const loader = async (path: string) => JSON.parse(readFileSync(path, 'utf8'));
  const schemaMap = schemaFiles();
  const { children } = await validate(structuredClone(objects), { schemaMap, loader });
  const faults = children.filter(({ valid }) => !valid);
  return { faults: faults.map(({ id, results }) => ({ id, results })), checked: children.length };
}
