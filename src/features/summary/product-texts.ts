/** Texts of products, for the outputs and the API of products. */

import type { ProductTexts } from '../products/index.ts';
import { textFromFacts } from './product-facts.ts';

export const productTexts: ProductTexts = {
  writtenTexts: ({ summaries }, productIds) => summaries.textsOf(productIds),
  reader: ({ summaries }) => summaries,
  textFromFacts,
};
