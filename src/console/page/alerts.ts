/** The page `/alerts`. */
import { html } from 'hono/html';
import type { PageRoute } from './page-route.ts';

export const alertsPage: PageRoute = {
  path: '/alerts',
  back: '30d',
  list: async () => ({ title: 'Alerts', body: html`` }),
};
