/** The page `/sinks`. */
import { html } from 'hono/html';
import type { PageRoute } from './page-route.ts';

export const sinksPage: PageRoute = {
  path: '/sinks',
  back: '7d',
  list: async () => ({ title: 'Sinks', body: html`` }),
};
