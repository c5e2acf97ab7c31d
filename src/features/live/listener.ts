/** The page `/live`: the newest notifications, refreshed as they arrive. */

import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import { shellText, spanText } from '../../core/page/browser/texts.ts';
import {
  choice,
  filterErrors,
  filterField,
  type PageRequest,
  type PageRoute,
  periodChoice,
  stateForm,
  subscriptionNames,
} from '../../core/page/layout.ts';
import {
  badge,
  copyButton,
  emptyState,
  facts,
  type Html,
  html,
  panel,
  type TableColumn,
  type Tone,
  table,
  withCommands,
} from '../../core/page/markup.ts';
import { type PageState, productLink } from '../../core/page/page-state.ts';
import { shortDateUs } from '../../core/terms/dates.ts';
import type { NotificationRow } from '../../core/terms/ports.ts';
import { toNotificationJson } from '../../core/terms/read-models.ts';
import { subscriptionEvents } from '../../core/terms/subscription.ts';
import { countText } from '../../core/terms/text.ts';
import { checkFilter } from '../../filter/check.ts';
import type { FilterTree } from '../../filter/filter-tree.ts';
import { type ProductCells, productCells, productNameText } from '../../filter/product-facts.ts';
import type { IndexedEvent } from '../../filter/products.ts';
import { placeOf } from '../products/places/places.ts';
import { liveRoute, readPositions, unlessUnavailable } from './feed.ts';

const rowsMax = 100;

/** Size of all rows on the page; usual are 150 kB. Texts come from outside, and may be long. */
const rowBytesMax = 512 * 1024;

/** Pages of indexed notifications that a list with a filter examines, about 10,000 notifications each. */
const pagesMax = 20;

/** A smaller lag of the index is usual. */
const lagShown = 1_000;

const livePage: PageRoute = {
  path: '/live',
  label: 'Live',
  group: 'data',
  scope: ['period', 'subscription'],
  back: '24h',
  list: async (parts, request) => {
    const { state } = request;
    const names = await subscriptionNames(parts);
    const page = { title: 'Live', controls: controls(state, names) };
    const { tree, errors } = checkFilter(state.filter, 'Products');
    if (errors.length > 0) return { ...page, body: filterErrors(state.filter, errors) };
    const note = await indexNote(parts);
    const newest = await newestRows(parts, request, tree);
    const shown = list(newest, request.nowUs);
    const body = panel('Notifications', html`${note}${shown}`, remark(newest, state));
    return { ...page, scripts: ['live.js'], refresh: state.until === undefined && 'live', body };
  },
};

function controls(state: PageState, names: readonly string[]): Html {
  const events = subscriptionEvents.map((event) => [event, event] as const);
  const subscriptions = names.map((name) => [name, name] as const);
  return stateForm(
    '/live',
    html`${choice('event', 'event', [['', 'all'], ...events], state.event)}
${choice('subscription', 'subscription', [['', 'all'], ...subscriptions], state.subscription)}
${periodChoice(state, '24h')}
${filterField(state)}`,
  );
}

/** States why facts of products are missing. */
async function indexNote(parts: ConsoleParts): Promise<Html | string> {
  const { lastPosition, indexedPosition } = await readPositions(parts);
  const lag = indexedPosition === null ? null : lastPosition - indexedPosition;
  if (lag !== null && lag <= lagShown) return '';
  const text =
    lag === null
      ? 'There is no product index: cloud cover and place are not known. Check: `earshot status`'
      : `The product index lags by ${countText(lag)} notifications: details appear later.`;
  return html`<p class="note">${withCommands(text)}</p>`;
}

interface LiveRow {
  row: NotificationRow;
  cells: ProductCells;
  details: Html;
}

interface NewestRows {
  rows: LiveRow[];
  /** Number of rows that are left out, because of their size. */
  omitted: number;
  /** Time until which the list is complete; null for the whole period. */
  completeSinceUs: number | null;
}

/** Returns the newest notifications, newest first; with a filter, the newest indexed ones. */
async function newestRows(
  parts: ConsoleParts,
  request: PageRequest,
  filter: FilterTree | null,
): Promise<NewestRows> {
  const { rows, events, completeSinceUs } =
    filter === null
      ? await newestLogged(parts, request)
      : await newestMatching(parts, request, filter);
  const known = new Map(events.map((one) => [one.position, one]));
  const login = parts.passwordNeeded ? ' --user earshot' : '';
  const curl = (path: string) => `curl${login} '${request.base}${path}'`;
  let left = rowBytesMax;
  const shown = rows.flatMap((row) => {
    const one = liveRow(row, known.get(row.position), curl);
    const bytes = Buffer.byteLength(`${one.details}${JSON.stringify(one.cells)}`);
    if (bytes > left) return [];
    left -= bytes;
    return one;
  });
  return { rows: shown, omitted: rows.length - shown.length, completeSinceUs };
}

interface Found {
  rows: NotificationRow[];
  /** Those of the index. */
  events: IndexedEvent[];
  completeSinceUs: number | null;
}

async function newestLogged(
  { products, notifications }: ConsoleParts,
  { state, signal }: PageRequest,
): Promise<Found> {
  const { subscription, sinceUs, untilUs } = state;
  const events = state.event === undefined ? undefined : [state.event];
  const period = { sinceUs, untilUs, limit: rowsMax };
  const rows = await Array.fromAsync(notifications.find({ subscription, events, ...period }));
  const [newest, oldest] = [rows[0], rows.at(-1)];
  if (newest === undefined || oldest === undefined) {
    return { rows, events: [], completeSinceUs: null };
  }
  const span = { afterPosition: oldest.position - 1, beforePosition: newest.position + 1 };
  const page = await products
    .events({ ...span, subscription, events, filter: null, limit: rowsMax }, signal)
    .catch(unlessUnavailable);
  return { rows, events: page?.events ?? [], completeSinceUs: null };
}

async function newestMatching(
  { products, notifications }: ConsoleParts,
  { state, signal }: PageRequest,
  filter: FilterTree,
): Promise<Found> {
  const { subscription, sinceUs, untilUs } = state;
  const query = { subscription, events: state.event === undefined ? undefined : [state.event] };
  // The order of receipt is the order of the positions, except for pushes at the same time.
  const edge = async (order: 'newest' | 'oldest') =>
    (await Array.fromAsync(notifications.find({ sinceUs, untilUs, order, limit: 1 })))[0];
  const [newest, oldest] = [await edge('newest'), await edge('oldest')];
  const events: IndexedEvent[] = [];
  if (newest === undefined || oldest === undefined) {
    return { rows: [], events, completeSinceUs: null };
  }
  const afterPosition = oldest.position - 1;
  let beforePosition: number | null = newest.position + 1;
  for (let i = 0; i < pagesMax && beforePosition !== null && events.length < rowsMax; i += 1) {
    const span = { afterPosition, beforePosition, limit: rowsMax - events.length };
    const page = await products.events({ ...query, filter, ...span }, signal);
    events.push(...page.events);
    beforePosition = page.next;
  }
  const positions = events.map(({ position }) => position);
  const rows = await Array.fromAsync(notifications.find({ positions }));
  if (beforePosition === null || events.length >= rowsMax) {
    return { rows, events, completeSinceUs: null };
  }
  const rest = notifications.find({ afterPosition: beforePosition - 1, order: 'oldest', limit: 1 });
  const [last] = await Array.fromAsync(rest);
  return { rows, events, completeSinceUs: last?.receivedAtUs ?? sinceUs };
}

const unknownFacts = {
  ...{ platform: null, productType: null, processingLevel: null, sensingStartUs: null },
  ...{ cloudCoverPercent: null, orbitNumber: null, relativeOrbitNumber: null, tile: null },
};

/** Returns the command that reads a path of the API. */
type CommandFor = (path: string) => string;

/** Describes a product that is not indexed yet by its name. */
function liveRow(row: NotificationRow, event: IndexedEvent | undefined, curl: CommandFor): LiveRow {
  const { product, footprint } = event ?? {};
  const productName = row.productName ?? product?.productName ?? null;
  return {
    row,
    cells: productCells(product ?? { ...unknownFacts, productName }, placeOf(footprint)),
    details: rowDetails(row, productNameText({ productId: row.productId, productName }), curl),
  };
}

function remark({ rows, omitted, completeSinceUs }: NewestRows, state: PageState): Html {
  const { untilUs, until, filter } = state;
  const shown =
    rows.length < rowsMax ? `${countText(rows.length)}` : `the newest ${countText(rows.length)}`;
  const end = until === undefined ? '' : `, until ${shortDateUs(untilUs)} UTC`;
  const source =
    filter === '' ? '' : ' A filter needs the product index, so rows appear after indexing.';
  const long =
    omitted === 0 ? '' : ` ${countText(omitted)} with long texts are left out: \`earshot query\`.`;
  const part =
    completeSinceUs === null
      ? ''
      : ` Only notifications after ${shortDateUs(completeSinceUs)} UTC were searched; for older ones, choose a period that ends there.`;
  return html`${shown} in this period${end}.${long}${source}${part}`;
}

function list({ rows, omitted }: NewestRows, nowUs: number): Html {
  if (rows.length + omitted === 0) {
    return emptyState(
      'No notification in this period matches.',
      html`New ones appear here automatically. Check the state of the subscriptions: ${withCommands('`earshot status`')}`,
    );
  }
  return table(columnsOf(nowUs), rows, { caption: 'Notifications, newest first', list: true });
}

/** Colours of the events of notifications. */
const eventTones: Readonly<Record<string, Tone>> = {
  created: 'good',
  modified: 'note',
  deleted: 'warn',
};

/** Narrow lists leave out columns of a low rank. */
function columnsOf(nowUs: number): TableColumn<LiveRow>[] {
  const today = shortDateUs(nowUs).slice(0, 10);
  const time = (text: string) => (text.startsWith(today) ? text.slice(11) : text.slice(5));
  return [
    {
      title: 'received (UTC)',
      class: 'tight',
      value: ({ row }) => time(shortDateUs(row.receivedAtUs, 'second')),
    },
    { title: 'event', value: ({ row }) => badge(eventTones[row.event] ?? 'plain', row.event) },
    { title: 'product', class: 'product-name', value: ({ details }) => details },
    { title: 'place', class: 'place', value: ({ cells }) => cells.place },
    { title: 'cloud', class: 'num cloud', value: ({ cells }) => cells.cloud },
    { title: 'type', class: 'rank-2', value: ({ cells }) => cells.type },
    { title: 'tile/orbit', class: 'tight rank-1', value: ({ cells }) => cells.tile },
    { title: 'delay', class: 'num rank-1', value: ({ row }) => delayText(row) },
    { title: 'subscription', class: 'rank-1', value: ({ row }) => row.subscription },
  ];
}

/** Formats the time from NotificationDate to receipt; null without the date. */
function delayText({ notificationDateUs, receivedAtUs }: NotificationRow): string | null {
  if (notificationDateUs === null) return null;
  return spanText(Math.max(0, (receivedAtUs - notificationDateUs) / 1_000_000));
}

/** The name of the product, which opens all fields. The first link identifies the row when the list is refreshed. */
function rowDetails(row: NotificationRow, name: string, curl: CommandFor): Html {
  const { productId, position } = row;
  const path = `/api/notification?position=${position}`;
  return html`<details><summary class="name">${name}</summary>
<p class="toolbar"><a class="button" href="${path}">Body</a> <a class="button" href="${productLink(productId)}">Open product</a>
${copyButton(productId, 'Copy id')}${copyButton(`earshot query --product-id=${shellText(productId)}`, 'Copy query command')}${copyButton(curl(path), 'Copy curl command')}</p>
${facts(Object.entries(toNotificationJson(row)))}</details>`;
}

export const pages = [livePage];

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  { route: liveRoute(parts), line: 'none' },
];

/** The positions of a page, as its script compares them with those of the feed. */
export const livePosition = async (parts: ConsoleParts): Promise<string> => {
  const { lastPosition, indexedPosition } = await readPositions(parts);
  return `${lastPosition}.${indexedPosition}`;
};
