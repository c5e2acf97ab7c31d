/** Deliveries to sinks, on the page of a product. */
import type { ConsoleParts, ShownProduct } from '../../core/api/listener-slot.ts';
import type { PageRequest } from '../../core/page/layout.ts';
import type { Html } from '../../core/page/markup.ts';
import { renderReport } from '../../core/page/render-report.ts';
import * as report from '../../core/terms/report.ts';
import { counted, quoted } from '../../core/terms/text.ts';
import type { SinkItem } from './terms.ts';

/** Items of sinks that are searched for the product, in each state. */
const itemsExaminedMax = 5_000;

export async function deliveryPanel(
  parts: ConsoleParts,
  request: PageRequest,
  product: ShownProduct,
): Promise<Html> {
  const blocks = await deliveries(parts, request, product);
  return renderReport({ title: 'Deliveries to sinks', blocks }, request.nowUs);
}

/** A delivered item leaves no trace, so the state follows from the position of the sink and from its open items. */
async function deliveries(
  { sinks }: ConsoleParts,
  { status }: PageRequest,
  { productId, notifications }: ShownProduct,
): Promise<report.Block[]> {
  const counts = await sinks.counts();
  if (counts.length === 0) {
    const next =
      'A sink passes notifications on to another program; it is defined in earshot.config.ts.';
    return [report.empty('There is no sink.', next)];
  }
  const [dead = [], waiting = []] = await Promise.all(
    (['dead', 'waiting'] as const).map(async (itemState) => {
      const items = await Array.fromAsync(
        sinks.items({ state: itemState, limit: itemsExaminedMax }),
      );
      return items.filter((item) => item.productId === productId);
    }),
  );
  const last = Math.max(0, ...notifications.map(({ position }) => position));
  const lines = counts.map(({ sink }): [sink: string, state: report.Value, detail: string] => {
    const failed = dead.find((one) => one.sink === sink);
    if (failed) return [sink, { level: 'critical', text: 'dead letter' }, attemptsText(failed)];
    const open = waiting.find((one) => one.sink === sink);
    if (open) return [sink, { level: 'unknown', text: 'pending' }, attemptsText(open)];
    const reader = status.readers.find(({ name }) => name === `sink ${sink}`);
    if (reader !== undefined && reader.position < last) {
      const detail = 'The sink has not reached the notification.';
      return [sink, { level: 'unknown', text: 'not read yet' }, detail];
    }
    const detail = 'Delivered, or not selected by the rules of the sink.';
    return [sink, { level: 'ok', text: 'no open delivery' }, detail];
  });
  return [
    report.table(
      'Deliveries to sinks',
      [
        { title: 'sink', value: ([sink]) => report.link(sink, '/sinks') },
        { title: 'state', value: ([, of]) => of },
        { title: 'detail', value: ([, , detail]) => detail, grows: true },
      ],
      lines,
    ),
  ];
}

function attemptsText({ attempts, error }: SinkItem): string {
  const tried = counted(attempts, 'attempt');
  return error === null ? tried : `${tried}: ${quoted(error)}`;
}
