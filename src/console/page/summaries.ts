/** The page `/summaries`: texts about products, digests, and the state of the queue. */
import type { SummaryStatus } from '../../domain/status.ts';
import {
  budgetSpent,
  type SummaryQuery,
  type SummaryRow,
  subjectName,
  summaryKinds,
} from '../../domain/summaries.ts';
import { collect } from '../notifications-route.ts';
import { choice, periodChoice, stateForm } from './layout.ts';
import {
  age,
  badge,
  command,
  count,
  emptyState,
  type Html,
  html,
  panel,
  type Tone,
  time,
  withCommands,
} from './markup.ts';
import { beforeId, commandList, olderLink, partState } from './operation.ts';
import type { PageRequest, PageRoute } from './page-route.ts';
import { productLink } from './page-state.ts';

const rowsMax = 50;

/** Values of the filter by state, with their conditions. */
const stateFilters = {
  verified: { text: 'verified', query: { verified: true } },
  unverified: { text: 'not verified', query: { verified: false } },
  waiting: { text: 'waiting', query: { state: 'waiting' } },
  asking: { text: 'requested now', query: { state: 'asking' } },
  failed: { text: 'failed', query: { state: 'failed' } },
  dropped: { text: 'dropped', query: { state: 'dropped' } },
} as const satisfies Record<string, { text: string; query: SummaryQuery }>;

type StateFilter = keyof typeof stateFilters;

export const summariesPage: PageRoute = {
  path: '/summaries',
  back: '7d',
  list: async ({ summaries }, request) => {
    const { url, signal, status, state } = request;
    const chosen = filtersOf(url);
    const { sinceUs, untilUs, subscription } = state;
    const query: SummaryQuery = {
      ...(chosen.state === undefined ? {} : stateFilters[chosen.state].query),
      ...{ kind: chosen.kind, subscription, sinceUs, untilUs },
      ...{ beforeId: beforeId(url), limit: rowsMax + 1 },
    };
    const spent: SummaryQuery = { state: 'waiting', error: budgetSpent, limit: 1 };
    const [rows, [waitsForBudget]] = await Promise.all([
      collect(summaries.find(query), signal),
      collect(summaries.find(spent), signal),
    ]);
    const { summaries: queue } = status;
    const isOff = queue?.mode === 'off' && queue.waiting + queue.failed + rows.length === 0;
    return {
      title: 'Summaries',
      refresh: true,
      controls: controls(request, chosen),
      body: html`${waitsForBudget === undefined ? partState(status, 'summaries') : budgetState(waitsForBudget, request)}
${isOff ? offPanel() : queuePanel(queue)}${listPanel(rows, request)}`,
    };
  },
};

interface Filters {
  state: StateFilter | undefined;
  kind: (typeof summaryKinds)[number] | undefined;
}

/** Unknown values count as no filter. */
function filtersOf({ searchParams }: URL): Filters {
  const [state, kind] = [searchParams.get('state'), searchParams.get('kind')];
  return {
    state: (Object.keys(stateFilters) as StateFilter[]).find((one) => one === state),
    kind: summaryKinds.find((one) => one === kind),
  };
}

function controls({ state }: PageRequest, chosen: Filters): Html {
  const states = Object.entries(stateFilters).map(([value, { text }]) => [value, text] as const);
  const kinds = summaryKinds.map((kind) => [kind, kind] as const);
  return stateForm(
    '/summaries',
    html`${choice('state', 'state', [['', 'all'], ...states], chosen.state)}
${choice('kind', 'kind', [['', 'all'], ...kinds], chosen.kind)}${periodChoice(state, '7d')}`,
    { subscription: state.subscription },
  );
}

/** States that requests wait for the budget, and until when. */
function budgetState({ error, nextAttemptAtUs }: SummaryRow, { nowUs }: PageRequest): Html {
  return html`<section class="panel part warning" aria-label="State">${badge('warn', 'budget used up')}
<div><p>${withCommands(error ?? '')} Next attempt ${age(nextAttemptAtUs, nowUs)}.</p>
<p>Next: wait, or increase the variable and restart the receiver.</p></div></section>`;
}

function queuePanel(queue: SummaryStatus | null): Html {
  if (queue === null) {
    return panel(
      'Queue',
      emptyState('The state of the queue is not known.', withCommands('Check: `earshot status`')),
    );
  }
  const figures = [
    ['waiting', queue.waiting],
    ['failed', queue.failed],
    ['requests in 24 h', queue.requests],
    ['tokens in 24 h', queue.tokens],
  ] as const;
  const modes = {
    each: 'one text per product',
    digest: 'one text per time span',
    off: 'off, so no new summaries are requested automatically',
  } as const;
  const retry =
    queue.failed === 0 ? '' : commandList([['Retry all', `earshot summarize --retry all`]]);
  return panel(
    'Queue',
    html`<dl class="figures">${figures.map(([name, value]) => html`<div><dt>${name}</dt><dd>${count(value)}</dd></div>`)}</dl>${retry}`,
    `mode: ${modes[queue.mode]}`,
  );
}

function offPanel(): Html {
  return panel(
    'Summaries are off',
    html`<p>A summary describes a product, or all notifications of a time span (a digest), in a few sentences. Each
statement is compared with the facts about the products.</p>
<p>To write summaries automatically, set these variables, and restart the receiver. Without a model, earshot generates
the text from the facts.</p>
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
        html`Choose a longer period or another state. To write summaries of the last day: ${withCommands('`earshot summarize --each --since 24h`')}`,
      ),
    );
  }
  const last = read.length > rows.length ? (rows.at(-1)?.id ?? null) : null;
  return panel(
    title,
    html`<ol class="summaries">${rows.map((row) => item(row, nowUs))}</ol>${olderLink(url, last)}`,
    `${count(rows.length)} shown, newest first`,
  );
}

function item(row: SummaryRow, nowUs: number): Html {
  const { id, productId, text, error, state, subscription, requestedAtUs } = row;
  const name = subjectName(row);
  const title =
    productId === null
      ? html`<strong>${name}</strong>`
      : html`<a class="name" href="${productLink(productId)}">${name}</a>`;
  const canRetry = state === 'failed' || state === 'dropped' || text?.verified === false;
  const written = text === null ? 'no text' : (text.model ?? 'without a model');
  return html`<li id="summary-${id}" data-row>
<p class="summary-title">${title} ${row.kind === 'digest' ? badge('plain', 'digest') : ''} ${stateBadge(row, nowUs)}</p>
${text === null ? '' : html`<p class="summary-text">${text.text}</p>`}
${text === null || text.doubts.length === 0 ? '' : html`<p class="doubts">Not in the facts: ${text.doubts.map((one, i) => html`${i === 0 ? '' : ', '}<q>${one}</q>`)}</p>`}
${error === null ? '' : html`<p>Reason: ${withCommands(error)}</p>`}
<p class="note">${written} · ${text === null ? html`requested ${time(requestedAtUs, nowUs, 'minute')}` : html`written ${time(text.createdAtUs, nowUs, 'minute')}`}${subscription === null || subscription === '' ? '' : ` · ${subscription}`} · id ${id}</p>
${canRetry ? command(`earshot summarize --retry ${id}`) : ''}</li>`;
}

function stateBadge({ state, text, nextAttemptAtUs }: SummaryRow, nowUs: number): Html {
  if (state === 'waiting') {
    const isDue = nextAttemptAtUs === null || nextAttemptAtUs <= nowUs;
    return isDue
      ? badge('note', 'queued')
      : html`${badge('note', 'waiting')} <span class="dim">next attempt ${age(nextAttemptAtUs, nowUs)}</span>`;
  }
  const [tone, label] = looksOf(state, text);
  return badge(tone, label);
}

function looksOf(
  state: Exclude<SummaryRow['state'], 'waiting'>,
  text: SummaryRow['text'],
): readonly [Tone, string] {
  if (state === 'failed') return ['bad', 'failed'];
  if (state === 'dropped') return ['warn', 'dropped'];
  if (state === 'asking') return ['note', 'requested now'];
  if (text === null) return ['plain', 'no text'];
  if (text.model === null) return ['good', 'from the facts'];
  return text.verified ? ['good', 'verified'] : ['warn', 'not verified'];
}
