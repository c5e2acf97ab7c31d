/** The page `/map`. */
import { html } from 'hono/html';
import type { PageRoute } from './page-route.ts';

export const mapPage: PageRoute = {
  path: '/map',
  back: '24h',
  list: async () => ({ title: 'Map', body: html`` }),
};
