/** The overview, and the API of the status. */

import { z } from 'zod';
import { type ApiRoute, apiRoute } from '../../core/api/api-route.ts';
import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import { shellText } from '../../core/page/browser/texts.ts';
import { type Bar, barChart } from '../../core/page/charts.ts';
import {
  indexLag,
  lagNote,
  type PageRequest,
  type PageRoute,
  periodChoice,
  stateForm,
} from '../../core/page/layout.ts';
import {
  age,
  command,
  emptyState,
  type Html,
  html,
  panel,
  type TableColumn,
  table,
} from '../../core/page/markup.ts';
import { listOfSpan, type PageState } from '../../core/page/page-state.ts';
import { renderBlocks, renderEvaluation } from '../../core/page/render-report.ts';
import {
  headline,
  type Status,
  statusSchema,
  toStatusJson,
  worstFirst,
} from '../../core/status/status.ts';
import { isAppError } from '../../core/terms/app-error.ts';
import { hourUs, shortDateUs } from '../../core/terms/dates.ts';
import { alertTitle } from '../../core/terms/evaluation.ts';
import { jsonSchemaOf } from '../../core/terms/json-rows.ts';
import * as report from '../../core/terms/report.ts';
import { countText } from '../../core/terms/text.ts';
import { productCells } from '../../filter/product-facts.ts';
import type { FoundProduct } from '../../filter/products.ts';
import { readSubscriptionCoverage } from '../coverage/coverage.ts';
import { dayStrip } from '../coverage/draw-hours.ts';
import { nameLink, smallMap } from '../products/page/product-list.ts';

const productsShown = 10;
const alertsShown = 5;

/** The store counts at most this period at once. */
const countedUs = 24 * hourUs;

const coverageDays = 7;

const overviewPage: PageRoute = {
  path: '/',
  label: 'Overview',
  group: 'data',
  scope: ['period', 'subscription'],
  parts: 'all',
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

/** Renders the state in one sentence, the next step with its commands, and the other problems. */
function health(status: Status): Html {
  const [worst, ...others] = worstFirst(status);
  if (worst === undefined) {
    const receiver = status.parts.find(({ part }) => part === 'receiver')?.text ?? '';
    return html`<section class="panel health" aria-label="State"><p><strong>${headline(status)}</strong> The receiver is ${receiver}.</p></section>`;
  }
  // The card of the alerts is on the same page.
  const also = others.filter(({ part }) => part !== 'alerts');
  const rows = also.map(({ part, ...one }) => [part, one] as const);
  const list =
    rows.length === 0
      ? ''
      : html`<p>Also not ok:</p>${renderBlocks([report.evaluations(rows)], status.atUs)}`;
  return html`<section class="panel health ${worst.level}" aria-label="State"><div>${renderEvaluation(worst)}${list}</div></section>`;
}

async function arrivalsPanel(
  { completeness }: ConsoleParts,
  { state, nowUs }: PageRequest,
): Promise<Html> {
  const bars = await arrivalBars({ completeness }, state);
  const total = bars.reduce((sum, { value }) => sum + value, 0);
  const last = bars.findLast(({ value }) => value > 0);
  const remark = `${countText(total)} in this period${last === undefined ? '' : `; ${lastHour(last, nowUs)}`}`;
  if (total === 0) {
    const { subscription } = state;
    const of = subscription === undefined ? '' : ` by the subscription ${subscription}`;
    return panel(
      'Notifications per hour',
      emptyState(
        `No notifications were received${of} in this period.`,
        html`Choose a longer period, or check the subscriptions: <a href="/subscriptions">Subscriptions</a>.`,
      ),
    );
  }
  const label = `Notifications per hour: ${countText(total)} in total, at most ${countText(Math.max(...bars.map(({ value }) => value)))} in an hour`;
  const period = { fromUs: state.sinceUs, toUs: state.untilUs };
  return panel('Notifications per hour', barChart(bars, { ...period, label }), remark);
}

/** `10 so far since 13:00`, `12 from 11:00 to 12:00` */
function lastHour({ value, fromUs, toUs }: Bar, nowUs: number): string {
  const [from, to] = [fromUs, toUs].map((us) => shortDateUs(us).slice(11));
  return toUs > nowUs
    ? `${countText(value)} so far since ${from}`
    : `${countText(value)} from ${from} to ${to}`;
}

/** Counts the notifications of each hour, day by day. */
async function arrivalBars(
  { completeness }: Pick<ConsoleParts, 'completeness'>,
  { sinceUs, untilUs, subscription }: PageState,
): Promise<Bar[]> {
  const counts = new Map<number, number>();
  for (let fromUs = sinceUs; fromUs < untilUs; fromUs += countedUs) {
    const toUs = Math.min(fromUs + countedUs, untilUs);
    for (const one of await completeness.stored({ sinceUs: fromUs, untilUs: toUs })) {
      if (subscription !== undefined && one.subscription !== subscription) continue;
      counts.set(one.hourUs, (counts.get(one.hourUs) ?? 0) + one.notifications);
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
  { completeness }: ConsoleParts,
  { nowUs, state: { subscription } }: PageRequest,
): Promise<Html> {
  const sinceUs = nowUs - coverageDays * countedUs;
  const window = { sinceUs, untilUs: nowUs, nowUs };
  const reports = await readSubscriptionCoverage(completeness, { ...window, subscription });
  if (reports.length === 0) {
    const reason =
      subscription === undefined
        ? 'No subscription is registered.'
        : `The subscription ${subscription} is not registered.`;
    return panel(
      'Coverage',
      html`${emptyState(reason, 'To register one:')}${command(registerCommand(subscription))}`,
    );
  }
  const remark = html`last ${coverageDays} days · <a href="/coverage">details</a>`;
  return panel('Coverage', dayStrip(reports, nowUs), remark);
}

function registerCommand(subscription: string | undefined): string {
  return subscription === undefined
    ? `earshot register`
    : `earshot register --subscription ${shellText(subscription)}`;
}

function alertsPanel({ status, nowUs }: PageRequest): Html {
  const { alerts } = status;
  const rows = alerts.map((one) => [alertTitle(one), one] as const);
  const more = alerts.length - alertsShown;
  const blocks = [
    alerts.length === 0
      ? report.empty('No alert is active.')
      : report.evaluations(rows.slice(0, alertsShown)),
    ...(more > 0 ? [report.text(`And ${more} more.`)] : []),
  ];
  const remark = html`${alerts.length} active · <a href="/alerts">details</a>`;
  return panel('Alerts', renderBlocks(blocks, nowUs), alerts.length === 0 ? '' : remark);
}

async function productsPanel(parts: ConsoleParts, request: PageRequest): Promise<Html> {
  const title = 'Latest products';
  const found = await newestProducts(parts, request);
  if (found === null) {
    const body = emptyState('There is no product index yet.', 'To check the receiver:');
    return panel(title, html`${body}${command('earshot status')}`);
  }
  const { lag, products } = found;
  const behind = lagNote(lag);
  if (products.length === 0) {
    return panel(title, html`${behind}${emptyState('No product was received yet.')}`);
  }
  const { nowUs, assets } = request;
  const remark = html`<a href="/products">all products</a> · <a href="/map">map</a>`;
  const map = smallMap(products, { assets, label: 'Footprints of the latest products' });
  return panel(
    title,
    html`${behind}<div class="columns latest">${table(columnsAt(nowUs), products, { caption: title, list: true })}${map}</div>`,
    remark,
  );
}

async function newestProducts(
  parts: ConsoleParts,
  { signal, state: { subscription } }: PageRequest,
): Promise<{ products: FoundProduct[]; lag: number } | null> {
  const query = { entity: 'Products', filter: null, limit: productsShown, records: false } as const;
  try {
    const lag = await indexLag(parts);
    const found = parts.products.find({ ...query, subscription, footprints: true }, signal);
    return { products: await Array.fromAsync(found), lag };
  } catch (error) {
    if (isAppError(error, 'unavailable')) return null;
    throw error;
  }
}

function columnsAt(nowUs: number): TableColumn<FoundProduct>[] {
  return [
    { title: 'received', value: ({ row }) => age(row.receivedAtUs, nowUs) },
    { title: 'product', class: 'product-name', value: ({ row }) => nameLink(row) },
    {
      ...{ title: 'cloud', isNumber: true, class: 'cloud' },
      value: ({ row }) => productCells(row, null).cloud,
    },
  ];
}

/** `/api/status`. */
function statusRoute({ status, statusParts }: ConsoleParts): ApiRoute {
  return apiRoute({
    path: '/api/status',
    operationId: 'showStatus',
    summary: 'Status of the receiver',
    description:
      'Status of each part of the receiver, with the next step for a part with a problem.',
    query: z.strictObject({}),
    answer: jsonSchemaOf(statusSchema(statusParts)),
    respond: async () => ({ body: toStatusJson(statusParts, await status()) }),
  });
}

export const pages = [overviewPage];

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  { route: statusRoute(parts), line: 'none' },
];
