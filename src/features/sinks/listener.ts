/** The page of sinks. */
import type { PageRoute } from '../../core/page/layout.ts';
import { renderReport } from '../../core/page/render-report.ts';
import { situationAt } from '../../core/terms/evaluation.ts';
import * as report from '../../core/terms/report.ts';
import { deliveryPanel } from './product-panel.ts';
import { evaluateSinkConfig, readItems, sinkSection, sinkTable } from './report.ts';

/** Dead letters, and failed deliveries, shown of each sink. */
const itemsShown = { dead: 50, waiting: 5 };

export const sinksPage: PageRoute = {
  path: '/sinks',
  label: 'Sinks',
  key: 'k',
  group: 'operation',
  scope: [],
  parts: ['sinks'],
  back: '7d',
  list: async (parts, { status, nowUs }) => {
    const { sinks, rejectedConfig = null, alerts } = status;
    const details = await Promise.all(
      sinks.map(async (sink) => {
        const items = (state: 'dead' | 'waiting') =>
          readItems(parts, {
            ...{ sink: sink.name, state, limit: itemsShown[state] },
            ...(state === 'waiting' && { failed: true }),
          });
        const failed = sink.failed === 0 ? [] : await items('waiting');
        return sinkSection(sink, { failed, dead: sink.dead === 0 ? [] : await items('dead') });
      }),
    );
    const situation = situationAt(nowUs, alerts);
    const config = evaluateSinkConfig({ fault: null, rejected: rejectedConfig }, situation);
    // The section of a sink has its problems.
    const file = report.evaluations([['earshot.config.ts', config]]);
    const blocks = [sinkTable(sinks, { config, nowUs }), file, ...details];
    const body = renderReport({ title: 'All sinks', blocks }, nowUs);
    return { title: 'Sinks', refresh: true, body };
  },
};

export const pages = [sinksPage];

export const productPanels = [deliveryPanel];
