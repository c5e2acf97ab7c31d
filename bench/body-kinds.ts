/** Notifications as they are measured by size: of generated products, and of the real records. */
import { existsSync, readFileSync } from 'node:fs';
import { createNotificationBuilder } from '../src/sandbox/delivery/notification.ts';
import { createProductGenerator } from '../src/sandbox/products/product-generator.ts';
import { createRandom, type Random } from '../src/sandbox/random.ts';

export const bodyKinds = ['generated', 'real'] as const;
export type BodyKind = (typeof bodyKinds)[number];

const recordsFile = new URL('../../shared/fixtures/products.jsonl', import.meta.url);

const firstMs = Date.UTC(2026, 6, 1);
const intervalMs = 2_700;
/** As the catalogue sends them: nothing odd. */
export const usualShape = {
  ackIdAbsent: false,
  ackIdGuid: false,
  arrayBody: false,
  capitalValue: false,
  valueAbsent: false,
};

/** False for the real records where they are not there. */
export function isThere(kind: BodyKind): boolean {
  return kind === 'generated' || existsSync(recordsFile);
}

/**
 * Bodies as the catalogue sends them, in one subscription. None comes twice: real records, which are few, are told of
 * again under ids of their own. Not the seed that the dictionary is trained with.
 */
export function* bodiesOf(kind: BodyKind, count: number, seed = 99): Generator<Buffer> {
  const random = createRandom(seed);
  const product = kind === 'generated' ? generatedProducts(seed) : realProducts(random);
  const builder = createNotificationBuilder({ subscriptionId: random.uuid(), random });
  for (let index = 0; index < count; index += 1) {
    const atMs = firstMs + index * intervalMs;
    yield builder.build({ event: 'created', product: product(atMs), atMs, shape: usualShape }).body;
  }
}

interface NamedProduct {
  Id: string;
  Name: string;
}

function generatedProducts(seed: number): (atMs: number) => NamedProduct {
  const generator = createProductGenerator({ seed });
  return (atMs) => generator.next(atMs - 60_000);
}

function realProducts(random: Random): () => NamedProduct {
  const lines = readFileSync(recordsFile, 'utf8').trim().split('\n');
  let next = 0;
  return () => {
    const line = lines[next % lines.length] ?? '';
    next += 1;
    const { Id } = JSON.parse(line) as NamedProduct;
    return JSON.parse(line.replaceAll(Id, random.uuid())) as NamedProduct;
  };
}
