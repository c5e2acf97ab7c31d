/** Puts beside each product the text about it: the one that was written, else one made of the facts alone. */
import type { FoundProduct, Products } from '../../domain/products.ts';
import { toTextJson } from '../../domain/summary-rows.ts';
import { openStoreReader } from '../../store/store.ts';
import { openPlaces, type Places } from '../../summary/places/places.ts';
import { prepareProduct } from '../../summary/worker/prepared.ts';
import type { ShownProduct } from './product-output.ts';

export async function* withTexts(
  found: AsyncIterable<FoundProduct>,
  products: Products,
  { dataDir, nowUs }: { dataDir: string; nowUs: () => number },
): AsyncGenerator<ShownProduct> {
  const store = openStoreReader(dataDir);
  let opened: Places | undefined;
  const places = () => {
    opened ??= openPlaces();
    return opened;
  };
  try {
    for await (const product of found) {
      const { productId } = product.row;
      const written = (await store.summaries.textsOf([productId])).get(productId);
      if (written !== undefined) {
        yield { ...product, summary: toTextJson(written) };
        continue;
      }
      const { template: text } = await prepareProduct(product, { products, places });
      const plain = { text, model: null, verified: true, doubts: [], createdAtUs: nowUs() };
      yield { ...product, summary: toTextJson(plain) };
    }
  } finally {
    await store.close();
  }
}
