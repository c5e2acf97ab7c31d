/** The page `/subscriptions`. */
import { html } from 'hono/html';
import type { PageRoute } from './page-route.ts';

export const subscriptionsPage: PageRoute = {
  path: '/subscriptions',
  back: '7d',
  list: async () => ({ title: 'Subscriptions', body: html`` }),
};
