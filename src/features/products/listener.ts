/** The pages and the API of products. */
import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import { productsPage } from './page/products.ts';
import { productsRoute } from './route.ts';

export const pages = [productsPage];

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  { route: productsRoute(parts), line: 'products' },
];
