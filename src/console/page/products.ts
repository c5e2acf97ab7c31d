/** The page `/products`. */
import { html } from 'hono/html';
import type { PageRoute } from './page-route.ts';

export const productsPage: PageRoute = {
  path: '/products',
  back: '30d',
  list: async () => ({ title: 'Products', body: html`` }),
};
