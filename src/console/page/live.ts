/** The page `/live`. */
import { html } from 'hono/html';
import type { PageRoute } from './page-route.ts';

export const livePage: PageRoute = {
  path: '/live',
  back: '24h',
  list: async () => ({ title: 'Live', body: html`` }),
};
