/** The page `/quarantine`. */
import { html } from 'hono/html';
import type { PageRoute } from './page-route.ts';

export const quarantinePage: PageRoute = {
  path: '/quarantine',
  back: '30d',
  list: async () => ({ title: 'Quarantine', body: html`` }),
};
