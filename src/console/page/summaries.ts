/** The page `/summaries`. */
import { html } from 'hono/html';
import type { PageRoute } from './page-route.ts';

export const summariesPage: PageRoute = {
  path: '/summaries',
  back: '7d',
  list: async () => ({ title: 'Summaries', body: html`` }),
};
