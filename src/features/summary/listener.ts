/** The page and the API of summaries. */

import { z } from 'zod';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  limitParameter,
  nextField,
  pageOf,
  positionParameter,
} from '../../core/api/api-route.ts';
import type { ConsoleParts, ServedRoute, ShownProduct } from '../../core/api/listener-slot.ts';
import { shellText } from '../../core/page/browser/texts.ts';
import {
  type PageRequest,
  type PageRoute,
  periodChoice,
  stateForm,
} from '../../core/page/layout.ts';
import {
  age,
  badge,
  emptyState,
  type Html,
  html,
  panel,
  time,
  withCommands,
} from '../../core/page/markup.ts';
import { productLink } from '../../core/page/page-state.ts';
import {
  beforeId,
  commandList,
  olderLink,
  partState,
  renderReport,
} from '../../core/page/render-report.ts';
import { jsonSchemaOf } from '../../core/terms/json-rows.ts';
import { collect, summaryKinds, summaryStates } from '../../core/terms/ports.ts';
import { summarySchema, toSummaryJson } from '../../core/terms/read-models.ts';
import * as report from '../../core/terms/report.ts';
import { countText } from '../../core/terms/text.ts';
import { id } from '../../filter/builder.ts';
import { type SummaryReader, type SummaryRow, subjectName } from './terms.ts';

const rowsMax = 50;

const summariesPage: PageRoute = {
  path: '/summaries',
  label: 'Summaries',
  group: 'operation',
  scope: ['period', 'subscription'],
  parts: ['summaries'],
  back: '7d',
  list: async ({ summaries }, request) => {
    const { url, signal, status, state } = request;
    const { sinceUs, untilUs, subscription } = state;
    const page = { beforeId: beforeId(url), limit: rowsMax + 1 };
    const rows = await collect(summaries.find({ subscription, sinceUs, untilUs, ...page }), signal);
    const { summaries: queue } = status;
    const isOff = queue?.mode === 'off' && queue.waiting + rows.length === 0;
    return {
      title: 'Summaries',
      refresh: true,
      controls: stateForm('/summaries', periodChoice(state, '7d'), { subscription }),
      body: html`${partState(status, 'summaries')}
${isOff ? offPanel() : listPanel(rows, request)}`,
    };
  },
};

function offPanel(): Html {
  return panel(
    'Summaries are off',
    html`<p>A summary describes a product, or the products of a period (a digest), in one or two sentences. A language
model writes the sentences, and earshot inserts the facts.</p>
<p>To write summaries automatically, set these variables, and restart the receiver. Without a model, the text comes from
a template.</p>
<ul><li><code>EARSHOT_SUMMARY</code>: <code>each</code> or <code>digest</code></li>
<li><code>EARSHOT_INFERENCE_API_KEY_FILE</code> and <code>EARSHOT_INFERENCE_MODEL</code>: the language model (optional)</li></ul>
${commandList([
  ['Show the requests, send nothing', `earshot summarize --each --since 24h --limit 5 --dry-run`],
  ['Write some now', `earshot summarize --each --since 24h --limit 20`],
])}`,
  );
}

function listPanel(read: readonly SummaryRow[], { url, nowUs }: PageRequest): Html {
  const rows = read.slice(0, rowsMax);
  const title = 'Summaries and digests';
  if (rows.length === 0) {
    return panel(
      title,
      emptyState(
        'No summary of this period matches.',
        html`Choose a longer period. To write summaries of the last day: ${withCommands('`earshot summarize --each --since 24h`')}`,
      ),
    );
  }
  return panel(
    title,
    html`<ol class="summaries">${rows.map((row) => item(row, nowUs))}</ol>${olderLink(url, read, rowsMax)}`,
    `${countText(rows.length)} shown, newest first`,
  );
}

function item(row: SummaryRow, nowUs: number): Html {
  const { id, productId, text, kind, subscription, requestedAtUs } = row;
  const name = subjectName(row);
  const title =
    productId === null
      ? html`<strong>${name}</strong>`
      : html`<a class="name" href="${productLink(productId)}">${name}</a>`;
  const when =
    text === null
      ? html`requested ${time(requestedAtUs, nowUs, 'minute')}`
      : html`written ${time(text.createdAtUs, nowUs, 'minute')}`;
  return html`<li id="summary-${id}">
<p class="summary-title">${title} ${kind === 'digest' ? badge('plain', 'digest') : ''} ${summaryBadge(row, nowUs)}</p>
${summaryBody(row)}
<p class="note">${when}${subscription ? ` · ${subscription}` : ''} · id ${id}</p></li>`;
}

/** The summary, on the page of a product. */
async function summaryPanel(
  { summaries }: ConsoleParts,
  { nowUs, signal }: PageRequest,
  { productId }: ShownProduct,
): Promise<Html> {
  const [row] = await collect(summaries.find({ kind: 'product', productId, limit: 1 }), signal);
  if (row !== undefined) return panel('Summary', summaryBody(row), summaryBadge(row, nowUs));
  const next = `earshot summarize --each --filter ${shellText(String(id.eq(productId)))}`;
  const blocks = [
    report.empty('No summary of this product was requested.'),
    report.commands(['Write one', next]),
  ];
  return renderReport({ title: 'Summary', blocks }, nowUs);
}

/** Returns the text with its facts, and the reason why it waits or is not from the model. */
function summaryBody({ text, reason }: SummaryRow): Html {
  const facts = Object.entries(text?.facts ?? {});
  return html`${text === null ? '' : html`<p class="summary-text">${text.text}</p>`}
${facts.length === 0 ? '' : html`<details><summary>Facts</summary><dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl></details>`}
${reason === null ? '' : html`<p class="note">${reason}</p>`}`;
}

function summaryBadge({ state, text, dueAtUs }: SummaryRow, nowUs: number): Html {
  if (state === 'waiting') {
    const isDue = dueAtUs === null || dueAtUs <= nowUs;
    return isDue
      ? badge('note', 'queued')
      : html`${badge('note', 'waiting')} <span class="dim">next attempt ${age(dueAtUs, nowUs)}</span>`;
  }
  if (text === null) return badge('plain', 'no text');
  return text.model === null ? badge('plain', 'from the template') : badge('good', text.model);
}

const query = z.strictObject({
  kind: z.enum(summaryKinds).optional(),
  state: z.enum(summaryStates).optional(),
  productId: z.string().optional(),
  subscription: z.string().optional(),
  since: dateParameter
    .optional()
    .describe('Start of the time range, by time of the request, inclusive, ISO 8601.'),
  until: dateParameter
    .optional()
    .describe('End of the time range, by time of the request, exclusive, ISO 8601.'),
  before: positionParameter.optional().describe('Only summaries with a lower id.'),
  limit: limitParameter,
});

/** Returns the route. */
function summariesRoute(summaries: Pick<SummaryReader, 'find'>): ApiRoute {
  return apiRoute({
    path: '/api/summaries',
    operationId: 'listSummaries',
    summary: 'Summaries of products, and digests',
    description: 'Pages of summaries, the newest first, with the reason for a missing text.',
    query,
    answer: z.object({ summaries: z.array(jsonSchemaOf(summarySchema)), next: nextField }),
    respond: async ({ since, until, before, limit, ...same }, url, signal) => {
      const found = summaries.find({
        ...same,
        sinceUs: since,
        untilUs: until,
        beforeId: before,
        limit: limit + 1,
      });
      const rows = await collect(found, signal);
      const { page, next } = pageOf(rows, { limit, url, parameter: 'before' }, ({ id }) => id);
      return { body: { summaries: page.map(toSummaryJson), next } };
    },
  });
}

export { productTexts } from './facts.ts';

export const pages = [summariesPage];

export const productPanels = [summaryPanel];

export const routes = ({ summaries }: ConsoleParts): ServedRoute[] => [
  { route: summariesRoute(summaries), line: 'log' },
];
