/** Trains a compression dictionary for bodies and writes it as a data file of the store. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRandom } from '../src/sandbox/clock.ts';
import {
  createIdentify,
  type NotificationEvent,
  pushBody,
} from '../src/sandbox/delivery/notification.ts';
import {
  type CatalogueProduct,
  createProductGenerator,
} from '../src/sandbox/products/product-generator.ts';
import { defineBenchmark } from './harness.ts';

/** Version to train. For a new one, increase it, and import the written file in src/store/bodies/bodies.ts. */
const version = 1;

/** Measured optimum: a smaller one makes packs larger; a larger one costs more to load than it saves (decision 28). */
const dictionaryBytes = 16 * 2 ** 10;

const name = `src/store/bodies/dictionary-${version}.json`;
const target = new URL(`../${name}`, import.meta.url);

/** Never replaces an existing dictionary: bodies were compressed with it. */
export const benchmark = defineBenchmark({
  command: 'npm run train:dictionary',
  about: 'Trains a compression dictionary for bodies. Needs the Debian package zstd.',
  options: {},
  async measure(_, { cleanup, folder }) {
    const trained = train(cleanup.temporaryFolder(folder));
    const about = `Dictionary ${version} for bodies, by npm run train:dictionary. Frozen: it is needed to read what was written.`;
    const text = `${JSON.stringify({ about, base64: trained.toString('base64') }, null, 2)}\n`;
    if (!existsSync(target)) writeFileSync(target, text);
    const isSame = readFileSync(target, 'utf8') === text;
    const fault = `${name} was not replaced: bodies were compressed with it. The new dictionary differs; to use it, increase the version in bench/train-dictionary.ts.`;
    return {
      setting: `${name}: ${trained.length} bytes`,
      ...{ figures: { bytes: trained.length }, text: [], faults: isSame ? [] : [fault] },
    };
  },
});

/** Returns the dictionary. */
function train(folder: string): Buffer {
  for (const [index, body] of [...samples()].entries()) {
    writeFileSync(join(folder, String(index)), body);
  }
  const output = join(folder, 'dictionary');
  const words = ['-q', '--train', `--maxdict=${dictionaryBytes}`, `--dictID=${version}`];
  const { error, status, stderr } = spawnSync('zstd', [...words, '-r', folder, '-o', output]);
  if (status === 0) return readFileSync(output);
  throw new Error(`zstd cannot train (apt install zstd): ${error?.message ?? stderr}`);
}

const sampleCount = 6_000;
const seed = 11;

/** Consecutive notifications per subscription. Limited, so that its id is not common to all bodies. */
const perSubscription = 20;

const firstMs = Date.UTC(2024, 0, 1);
const intervalMs = (2 * 365 * 86_400_000) / sampleCount;
const noticeMs = 60_000;

/** Shares of events; the others are `created`. */
const eventShares = { modified: 0.1, deleted: 0.1 };

/** Generates notifications of all missions and events, deterministic. */
function* samples(): Generator<Buffer> {
  const random = createRandom(seed);
  const generator = createProductGenerator({ seed });
  let identify = createIdentify(random.uuid(), random);
  for (let index = 0; index < sampleCount; index += 1) {
    if (index % perSubscription === 0) identify = createIdentify(random.uuid(), random);
    const publishedMs = Math.floor(firstMs + index * intervalMs);
    const atMs = publishedMs + noticeMs;
    const created = generator.next(publishedMs);
    const drawn = random.next();
    const bodyOf = (event: NotificationEvent, product: CatalogueProduct) =>
      pushBody(identify({ event, product, atMs }), product);
    if (drawn < eventShares.modified) {
      yield bodyOf('modified', generator.modified(created, atMs));
    } else if (drawn < eventShares.modified + eventShares.deleted) {
      yield bodyOf('deleted', generator.deleted(created, atMs));
    } else yield bodyOf('created', created);
  }
}
