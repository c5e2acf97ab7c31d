/** Puts beside each product the text about it: the one that was written, else one made of the facts alone. */
import { batches } from '../../domain/batches.ts';
import type { FoundProduct, Products } from '../../domain/products.ts';
import { toTextJson } from '../../domain/summary-rows.ts';
import { openStoreReader } from '../../store/store.ts';
import { lazyPlaces } from '../../summary/places/places.ts';
import { prepareProduct } from '../../summary/worker/prepared.ts';
import type { ShownProduct } from './product-output.ts';

/** Products whose texts are looked up together: as many as the index gives at once. */
const lookedUpMax = 64;

/** In the order in which they were found. */
export async function* withTexts(
  found: AsyncIterable<FoundProduct>,
  products: Products,
  { dataDir, nowUs }: { dataDir: string; nowUs: () => number },
): AsyncGenerator<ShownProduct> {
  const store = openStoreReader(dataDir);
  const places = lazyPlaces();
  const textOfFacts = async (product: FoundProduct) => {
    const { template: text } = await prepareProduct(product, { products, places });
    return { text, model: null, verified: true, doubts: [], createdAtUs: nowUs() };
  };
  try {
    for await (const batch of batches(found, lookedUpMax)) {
      const written = await store.summaries.textsOf(batch.map(({ row }) => row.productId));
      for (const product of batch) {
        const text = written.get(product.row.productId) ?? (await textOfFacts(product));
        yield { ...product, summary: toTextJson(text) };
      }
    }
  } finally {
    await store.close();
  }
}
