/** The page `/coverage`. */
import { html } from 'hono/html';
import type { PageRoute } from './page-route.ts';

export const coveragePage: PageRoute = {
  path: '/coverage',
  back: '7d',
  list: async () => ({ title: 'Coverage', body: html`` }),
};
