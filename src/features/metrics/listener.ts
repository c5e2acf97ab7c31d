/** `/metrics`. */
import type { Protocol } from '../../core/api/listener-slot.ts';
import { metricsContentType } from './metrics.ts';

const protocol: Protocol = {
  root: '/metrics',
  paths: [{ method: 'GET', path: '/metrics', summary: 'Metrics for Prometheus' }],
  add: (app, { metrics, status }) => {
    app.get('/metrics', async (c) =>
      c.body(await metrics.scrape(status), 200, { 'Content-Type': metricsContentType }),
    );
  },
};

export const protocols = [protocol];
