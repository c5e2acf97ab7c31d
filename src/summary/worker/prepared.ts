/** Makes ready what is to be said about a job's subject: the facts for a model, and the template. */
import type { FoundProduct } from '../../domain/products.ts';
import type { DigestScope, SummaryJob } from '../../domain/summaries.ts';
import { createDigestCount } from '../digest/digest-facts.ts';
import { digestSheet } from '../digest/digest-sheet.ts';
import { digestText } from '../digest/digest-text.ts';
import type { FactSheet } from '../facts/fact-sheet.ts';
import { productFacts } from '../facts/product-facts.ts';
import { productSheet } from '../facts/product-sheet.ts';
import { productText } from '../facts/product-text.ts';
import { digestEvents } from './digest-events.ts';
import { otherVersions, productById } from './known-products.ts';
import { placeOf } from './place-of.ts';
import type { SummaryWorld } from './summary-world.ts';

export interface Prepared {
  sheet: FactSheet;
  template: string;
}

type Means = Pick<SummaryWorld, 'notifications' | 'products' | 'places'>;

/**
 * Null when nothing is known of the subject: the index does not have it, or nothing arrived. Throws as the
 * signal does: a digest of a long window takes its time.
 */
export async function prepare(
  job: Pick<SummaryJob, 'productId' | 'scope'>,
  means: Means,
  signal?: AbortSignal,
): Promise<Prepared | null> {
  if (job.scope !== null) return prepareDigest(job.scope, means, signal);
  const found = job.productId === null ? null : await productById(means.products, job.productId);
  return found === null ? null : prepareProduct(found, means);
}

/** The facts of a product as the index has it. */
export async function prepareProduct(
  found: FoundProduct,
  { products, places }: Pick<Means, 'products' | 'places'>,
): Promise<Prepared> {
  const others = await otherVersions(products, found);
  const facts = productFacts(found, { place: placeOf(found, places()), others });
  return { sheet: productSheet(facts), template: productText(facts) };
}

async function prepareDigest(
  scope: DigestScope,
  means: Means,
  signal: AbortSignal | undefined,
): Promise<Prepared | null> {
  const count = createDigestCount();
  let added = 0;
  for await (const event of digestEvents(scope, means, signal)) {
    count.add(event);
    added += 1;
  }
  if (added === 0) return null;
  const facts = count.facts(scope);
  return { sheet: digestSheet(facts), template: digestText(facts) };
}
