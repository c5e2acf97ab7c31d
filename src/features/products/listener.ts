/** The pages and the API of products. */
import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import { productsPage } from './page/products.ts';
import { productsRoute } from './route.ts';

export const pages = [productsPage];

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  {
    route: productsRoute({
      ...parts,
      textsOf: async (productIds) => {
        const source = parts.slots.find(({ productTexts }) => productTexts)?.productTexts;
        return (await source?.writtenTexts(parts, productIds)) ?? new Map();
      },
    }),
    line: 'products',
  },
];
