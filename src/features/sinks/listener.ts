/** The page of sinks. */
import type { ConsoleParts, ShownProduct } from '../../core/api/listener-slot.ts';
import type { PageRequest, PageRoute } from '../../core/page/layout.ts';
import { renderReport } from '../../core/page/render-report.ts';
import { situationAt } from '../../core/terms/evaluation.ts';
import * as report from '../../core/terms/report.ts';
import { evaluateConfig, itemTable, readItems, sinkSection, sinkTable } from './report.ts';

/** Dead letters, and failed deliveries, shown of each sink. */
const itemsShown = { dead: 50, waiting: 5 };

const sinksPage: PageRoute = {
  path: '/sinks',
  label: 'Sinks',
  group: 'operation',
  scope: [],
  parts: ['sinks'],
  back: '7d',
  list: async (parts, { status, nowUs }) => {
    const { sinks, alerts } = status;
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
    const config = evaluateConfig(status, situation);
    // The section of a sink has its problems.
    const file = report.evaluations([['earshot.config.ts', config]]);
    const blocks = [sinkTable(sinks, { config, nowUs }), file, ...details];
    const body = renderReport({ title: 'All sinks', blocks }, nowUs);
    return { title: 'Sinks', refresh: true, body };
  },
};

export const pages = [sinksPage];

/** Items of sinks that are searched for a product, in each state. */
const itemsExaminedMax = 5_000;

/** The dead letters and the waiting deliveries of a product. */
async function deliveryPanel(
  { sinks }: ConsoleParts,
  { nowUs }: PageRequest,
  { productId }: ShownProduct,
) {
  const tables = await Promise.all(
    (['dead', 'waiting'] as const).map(async (state) => {
      const items = await Array.fromAsync(sinks.items({ state, limit: itemsExaminedMax }));
      const own = items.filter((item) => item.productId === productId);
      const rows = own.map((item) => ({ item, notification: null }));
      const caption = state === 'dead' ? 'Dead letters' : 'Waiting deliveries';
      return rows.length === 0 ? [] : [itemTable(caption, rows, { state, isOfOne: false })];
    }),
  );
  const none = report.empty('No delivery to a sink waits or was refused.');
  const blocks = tables.flat();
  return renderReport(
    { title: 'Deliveries to sinks', blocks: blocks.length === 0 ? [none] : blocks },
    nowUs,
  );
}

export const productPanels = [deliveryPanel];
