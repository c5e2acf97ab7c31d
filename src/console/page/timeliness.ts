/** The page `/timeliness`. */
import { html } from 'hono/html';
import type { PageRoute } from './page-route.ts';

export const timelinessPage: PageRoute = {
  path: '/timeliness',
  back: '24h',
  list: async () => ({ title: 'Timeliness', body: html`` }),
};
