/** The overview: healthy or not, what arrived, what is missing, and the next step. */
import { html } from 'hono/html';
import { isAppError } from '../../domain/app-error.ts';
import { hourUs } from '../../domain/completeness.ts';
import { readSubscriptionCoverage } from '../../domain/coverage.ts';
import { productCells, productNameText } from '../../domain/product-cells.ts';
import type { FoundProduct } from '../../domain/products.ts';
import { headline, isWell, type Status, worstFirst } from '../../domain/status.ts';
import { type Bar, barChart } from './charts.ts';
import { coverageStrip } from './coverage-strip.ts';
import { periodChoice, stateForm } from './layout.ts';
import {
  age,
  badge,
  count,
  emptyState,
  type Html,
  panel,
  type TableColumn,
  table,
  withCommands,
} from './markup.ts';
import type { PageParts, PageRequest, PageRoute } from './page-route.ts';
import { listOfSpan, type PageState, productLink } from './page-state.ts';
import { smallMap } from './small-map.ts';

const productsShown = 10;
const alertsShown = 5;

/** The store counts at most this period at once. */
const countedUs = 24 * hourUs;

const coverageDays = 7;

export const overviewPage: PageRoute = {
  path: '/',
  back: '24h',
  list: async (parts, request) => {
    const { status, state } = request;
    const [arrivals, coverage, products] = await Promise.all([
      arrivalsPanel(parts, request),
      coveragePanel(parts, request),
      productsPanel(parts, request),
    ]);
    return {
      title: 'Overview',
      refresh: true,
      controls: stateForm('/', periodChoice(state, '24h'), { subscription: state.subscription }),
      body: html`${health(status)}<div class="grid overview">
<div class="span">${arrivals}</div>${coverage}${alertsPanel(request)}<div class="span">${products}</div></div>`,
    };
  },
};

/** Renders the state in one sentence, and the next step. */
function health(status: Status): Html {
  const [worst] = worstFirst(status);
  if (worst === undefined || isWell(status)) {
    const receiver = status.parts.find(({ part }) => part === 'receiver')?.text ?? '';
    return html`<section class="panel health" aria-label="State"><p><strong>Healthy.</strong> The receiver is ${receiver}.</p></section>`;
  }
  return html`<section class="panel health ${worst.level}" aria-label="State"><div><p><strong>${withCommands(headline(status))}</strong></p>
${worst.nextStep === null ? '' : html`<p>Next: ${withCommands(worst.nextStep)}</p>`}</div></section>`;
}

async function arrivalsPanel(
  { completeness }: PageParts,
  { state, nowUs }: PageRequest,
): Promise<Html> {
  const bars = await arrivalBars({ completeness }, state);
  const total = bars.reduce((sum, { value }) => sum + value, 0);
  const last = bars.findLast(({ value }) => value > 0);
  const remark = html`${count(total)} in this period${last === undefined ? '' : html`; ${count(last.value)} in the hour from ${age(last.fromUs, nowUs)}`}`;
  if (total === 0) {
    return panel(
      'Notifications per hour',
      emptyState(
        'No notifications were received in this period.',
        html`Choose a longer period, or check the subscriptions: <a href="/subscriptions">Subscriptions</a>.`,
      ),
    );
  }
  const label = `Notifications per hour: ${count(total)} in total, at most ${count(Math.max(...bars.map(({ value }) => value)))} in an hour`;
  const period = { fromUs: state.sinceUs, toUs: state.untilUs };
  return panel(
    'Notifications per hour',
    html`<div class="for-wide">${barChart(bars, { ...period, label, width: 900 })}</div>
<div class="for-narrow">${barChart(bars, { ...period, label, width: 420 })}</div>`,
    remark,
  );
}

/** Counts the pushes of each hour, day by day. */
async function arrivalBars(
  { completeness }: Pick<PageParts, 'completeness'>,
  { sinceUs, untilUs, subscription }: PageState,
): Promise<Bar[]> {
  const counts = new Map<number, number>();
  for (let fromUs = sinceUs; fromUs < untilUs; fromUs += countedUs) {
    const toUs = Math.min(fromUs + countedUs, untilUs);
    for (const one of await completeness.arrivals({ sinceUs: fromUs, untilUs: toUs })) {
      if (subscription !== undefined && one.subscription !== subscription) continue;
      counts.set(one.hourUs, (counts.get(one.hourUs) ?? 0) + one.pushes);
    }
  }
  return [...counts].map(([hour, value]) => ({
    fromUs: hour,
    toUs: hour + hourUs,
    value,
    href: listOfSpan(hour, hour + hourUs, { subscription }),
  }));
}

async function coveragePanel(
  { completeness, comparisonOff }: PageParts,
  { nowUs }: PageRequest,
): Promise<Html> {
  const sinceUs = nowUs - coverageDays * countedUs;
  const reports = await readSubscriptionCoverage(completeness, { sinceUs, untilUs: nowUs, nowUs });
  if (reports.length === 0) {
    const next = html`Register one: ${withCommands('`earshot register`')}`;
    return panel('Coverage', emptyState('No subscription is registered.', next));
  }
  const remark = html`last ${coverageDays} days · <a href="/coverage">details</a>`;
  return panel(
    'Coverage',
    coverageStrip(reports, { comparisonOff: comparisonOff(), nowUs }),
    remark,
  );
}

function alertsPanel({ status, nowUs }: PageRequest): Html {
  const { alerts } = status;
  if (alerts.length === 0) return panel('Alerts', emptyState('No alert is active.'));
  const shown = alerts.slice(0, alertsShown);
  const items = shown.map(
    (one) => html`<li>${badge(one.severity === 'critical' ? 'bad' : 'warn', one.severity)}
${one.cause} <span class="dim">raised ${age(one.raisedAtUs, nowUs)}</span><br>Next: ${withCommands(one.nextStep)}</li>`,
  );
  const more = alerts.length - shown.length;
  const remark = html`${alerts.length} active · <a href="/alerts">details</a>`;
  return panel(
    'Alerts',
    html`<ul class="plain">${items}${more > 0 ? html`<li>and ${more} more</li>` : ''}</ul>`,
    remark,
  );
}

async function productsPanel(parts: PageParts, request: PageRequest): Promise<Html> {
  const title = 'Latest products';
  const found = await newestProducts(parts, request);
  if (found === null) {
    const next = html`Check the index: ${withCommands('`earshot index`')}`;
    return panel(title, emptyState('There is no product index yet.', next));
  }
  if (found.length === 0) return panel(title, emptyState('No product was received yet.'));
  const { nowUs, assets } = request;
  const items = found.map(({ row, footprint }) => ({
    title: productNameText(row),
    href: productLink(row.productId),
    footprint,
  }));
  const remark = html`<a href="/products">all products</a> · <a href="/map">map</a>`;
  const map = smallMap(items, { assets, label: 'Footprints of the latest products' });
  return panel(
    title,
    html`<div class="columns latest">${table(columnsAt(nowUs), found, { caption: title, list: true })}${map}</div>`,
    remark,
  );
}

async function newestProducts(
  { products }: PageParts,
  { signal }: PageRequest,
): Promise<FoundProduct[] | null> {
  const query = { entity: 'Products', filter: null, limit: productsShown, records: false } as const;
  try {
    return await Array.fromAsync(products.find({ ...query, footprints: true }, signal));
  } catch (error) {
    if (isAppError(error, 'unavailable')) return null;
    throw error;
  }
}

function columnsAt(nowUs: number): TableColumn<FoundProduct>[] {
  const cells = ({ row }: FoundProduct) => productCells(row, null);
  return [
    { title: 'received', value: ({ row }) => age(row.receivedAtUs, nowUs) },
    {
      title: 'product',
      class: 'tight',
      value: (one) => {
        const { mission, type, tile } = cells(one);
        const text = [mission, type, tile].filter((part) => part !== null).join(' ');
        return html`<a href="${productLink(one.row.productId)}">${text === '' ? productNameText(one.row) : text}</a>`;
      },
    },
    { title: 'cloud', value: (one) => cells(one).cloud, isNumber: true },
    { title: 'sensed (UTC)', value: (one) => cells(one).sensed, class: 'tight' },
  ];
}
