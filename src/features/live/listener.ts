/** The page `/live`: notifications as they arrive, newest first. */

import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import { eventTones, liveFacts, timeText } from '../../core/page/browser/texts.ts';
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
  emptyState,
  type Html,
  html,
  panel,
  type TableColumn,
  table,
  withCommands,
} from '../../core/page/markup.ts';
import { linkTo, type PageState } from '../../core/page/page-state.ts';
import { formatDateUs, shortDateUs } from '../../core/terms/dates.ts';
import { subscriptionEvents } from '../../core/terms/subscription.ts';
import { countText } from '../../core/terms/text.ts';
import { checkFilter } from '../../filter/check.ts';
import type { FilterTree } from '../../filter/filter-tree.ts';
import { nameLink } from '../products/page/product-list.ts';
import { createLiveFeed, liveRoute } from './feed.ts';
import { cursorText, type LiveRow, type NewestRows, newestCursor, newestLiveRows } from './rows.ts';

/** Rows of the list, also after new ones arrived. */
const rowsMax = 200;

/** Data of the script. */
export interface LiveData {
  rows: LiveRow[];
  rowsMax: number;
  /** Query of the stream, without the position. Null for a period that has ended: nothing can arrive. */
  stream: string | null;
  /** Position of the stream at which the rows were read. */
  after: string;
  passwordNeeded: boolean;
}

export const livePage: PageRoute = {
  path: '/live',
  label: 'Live',
  group: 'data',
  scope: ['period', 'subscription'],
  back: '24h',
  list: async (parts, request) => {
    const { state } = request;
    const names = await subscriptionNames(parts);
    const page = { title: 'Live', controls: controls(state, names) };
    const { tree, findings: found } = checkFilter(state.filter, 'Products');
    const errors = found.filter(({ severity }) => severity === 'error');
    if (errors.length > 0) return { ...page, body: filterErrors(state.filter, errors) };
    // Read before the rows, so that the stream has all later ones.
    const after = cursorText(await newestCursor(parts));
    const newest = await rowsOf(parts, request, tree);
    const stream = state.until === undefined ? linkTo('/api/live', streamState(state)) : null;
    const { passwordNeeded } = parts;
    const { rows } = newest;
    const data: LiveData = { rows, rowsMax, stream, after, passwordNeeded };
    const shown = panel('Notifications', list(rows, request), remark(newest, state));
    return { ...page, scripts: ['live.js'], data, body: html`<div id="live">${shown}</div>` };
  },
};

function rowsOf(
  parts: ConsoleParts,
  { state, signal }: PageRequest,
  filter: FilterTree | null,
): Promise<NewestRows> {
  const { subscription, event, sinceUs, untilUs } = state;
  const events = event === undefined ? undefined : [event];
  const query = { subscription, events, filter, sinceUs, untilUs, limit: rowsMax };
  return newestLiveRows(parts, query, signal);
}

function streamState({ subscription, event, filter }: PageState) {
  return { subscription, event, filter };
}

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

function remark(
  { rows, completeSinceUs }: NewestRows,
  { untilUs, until, filter }: PageState,
): Html {
  const shown =
    rows.length < rowsMax ? `${countText(rows.length)}` : `the newest ${countText(rows.length)}`;
  const end = until === undefined ? '' : `, until ${shortDateUs(untilUs)} UTC`;
  const source =
    filter === '' ? '' : ' A filter needs the product index, so rows appear after indexing.';
  const part =
    completeSinceUs === null
      ? ''
      : ` Only notifications after ${shortDateUs(completeSinceUs)} UTC were searched; for older ones, choose a period that ends there.`;
  return html`${shown} in this period${end}.${source}${part}`;
}

function list(rows: readonly LiveRow[], { nowUs }: PageRequest): Html {
  if (rows.length === 0) {
    return emptyState(
      'No notification in this period matches.',
      html`New ones appear here automatically. Check the state of the subscriptions: ${withCommands('`earshot status`')}`,
    );
  }
  return table(columnsAt(nowUs), rows, { caption: 'Notifications, newest first', list: true });
}

/** The script shows the same columns (browser/live.ts). */
function columnsAt(nowUs: number): TableColumn<LiveRow>[] {
  const today = formatDateUs(nowUs).slice(0, 10);
  return [
    {
      title: 'received (UTC)',
      value: ({ receivedAt }) =>
        html`<time datetime="${receivedAt}" class="tight">${timeText(receivedAt, today)}</time>`,
    },
    { title: 'event', value: ({ event }) => badge(eventTones[event] ?? 'plain', event) },
    { title: 'product', class: 'product-name', value: nameLink },
    ...liveFacts.map(({ title, class: name, text }) => ({ title, class: name, value: text })),
  ];
}

export const pages = [livePage];

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  { route: liveRoute(createLiveFeed(parts, parts.closing, parts.liveLimits)), line: 'none' },
];

export const livePosition = (parts: ConsoleParts): Promise<string> =>
  newestCursor(parts).then(cursorText);
