/** The page `/timeliness`: delays from sensing to receipt, each stage separately. */

import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import { spanText } from '../../core/page/browser/texts.ts';
import { type DelayPoint, delayChart, percentileLines } from '../../core/page/charts.ts';
import {
  choice,
  indexLag,
  lagNote,
  type PageRequest,
  type PageRoute,
  periodChoice,
  stateForm,
  subscriptionNames,
} from '../../core/page/layout.ts';
import {
  emptyState,
  type Html,
  html,
  panel,
  type TableColumn,
  table,
  withCommands,
} from '../../core/page/markup.ts';
import { linkTo, listOfSpan, type PageState, sharedState } from '../../core/page/page-state.ts';
import { isAppError } from '../../core/terms/app-error.ts';
import { hourOf, hourUs, shortDateUs } from '../../core/terms/dates.ts';
import { countText } from '../../core/terms/text.ts';
import {
  type DelayPercentiles,
  type DelayStage,
  delayStages,
  type Timeliness,
} from '../../filter/products.ts';
import { timelinessRoute } from './route.ts';

/** With more hours, the chart has no links, and the table contains the newest hours. */
const linkedHoursMax = 750;
const listedHoursMax = 400;

const back = '24h';

interface StageText {
  title: string;
  /** Explanation in one sentence. */
  meaning: string;
  counted: string;
  /** Cause of negative delays, and the next step. */
  negative: string;
}

const stageTexts: Readonly<Record<DelayStage, StageText>> = {
  sensingToPublication: {
    title: 'Sensing to publication',
    meaning:
      'The time from the end of sensing (`ContentDate/End`) to `PublicationDate`: downlink, processing and upload.',
    counted:
      'Created products, including recovered ones. Modified and deleted products are excluded.',
    negative: 'Their records have a PublicationDate before the end of sensing.',
  },
  publicationToNotification: {
    title: 'Publication to notification',
    meaning:
      'The time from `PublicationDate` to `NotificationDate`: how fast the catalogue sends notifications.',
    counted:
      'Pushes of created products. Recovered notifications are excluded, as they have no NotificationDate; so are modified and deleted products.',
    negative:
      'Their NotificationDate is before the PublicationDate: clocks of the catalogue disagree.',
  },
  notificationToReceipt: {
    title: 'Notification to storage',
    meaning:
      'The time from `NotificationDate` to the receipt by earshot, which stores a notification before it answers.',
    counted: 'All pushes. Recovered notifications are excluded, as they have no NotificationDate.',
    negative:
      'The clock of this machine shows an earlier time than the clock of the catalogue. Synchronize it with NTP.',
  },
};

export const timelinessPage: PageRoute = {
  path: '/timeliness',
  label: 'Timeliness',
  key: 't',
  group: 'data',
  scope: ['period', 'subscription'],
  back,
  list: async (parts, request) => {
    const { state, url } = request;
    const collection = url.searchParams.get('collection')?.trim() || undefined;
    const [found, names] = await Promise.all([
      timelinessOf(parts, request, collection),
      subscriptionNames(parts),
    ]);
    return {
      title: 'Timeliness',
      refresh: state.until === undefined,
      controls: controls(state, { names, found, collection }),
      body: found === null ? unavailable() : panels(found, request, collection),
    };
  },
};

type Found = Timeliness & { lag: number };

/** Null when the index cannot be read. */
async function timelinessOf(
  parts: ConsoleParts,
  { state, signal }: PageRequest,
  collection: string | undefined,
): Promise<Found | null> {
  const { sinceUs, untilUs, subscription } = state;
  try {
    const lag = await indexLag(parts);
    const query = { sinceUs, untilUs, subscription, collection };
    return { ...(await parts.products.timeliness(query, signal)), lag };
  } catch (error) {
    if (isAppError(error, 'unavailable')) return null;
    throw error;
  }
}

function controls(
  state: PageState,
  {
    names,
    found,
    collection,
  }: { names: readonly string[]; found: Found | null; collection: string | undefined },
): Html {
  const collections = (found?.collections ?? []).flatMap((one) =>
    one.collection === null ? [] : [[one.collection, one.collection] as const],
  );
  const subscriptions = names.map((name) => [name, name] as const);
  return stateForm(
    '/timeliness',
    html`${choice('subscription', 'subscription', [['', 'all'], ...subscriptions], state.subscription)}
${choice('collection', 'collection', [['', 'all'], ...collections], collection)}
${periodChoice(state, back)}`,
  );
}

function unavailable(): Html {
  return panel(
    'Delays',
    emptyState(
      'Delays cannot be shown: there is no product index, or it cannot be read.',
      html`${withCommands('Check that `EARSHOT_INDEX` is not `off`, and the state of the index: `earshot admin index`')}`,
    ),
  );
}

function panels(found: Found, request: PageRequest, collection: string | undefined): Html {
  const { state } = request;
  const shown = found.collections.filter(
    (one) => collection === undefined || one.collection === collection,
  );
  if (found.hours.length === 0) {
    const lag = lagNote(found.lag);
    const next = html`Choose a longer period or <a href="${linkTo('/timeliness', { since: state.since, until: state.until })}">all subscriptions and collections</a>, or check the <a href="/subscriptions">subscriptions</a>.`;
    return html`${lag}${panel('Delays', emptyState('No notification was received in this period.', next))}`;
  }
  return html`${lagNote(found.lag)}
<p class="note">Each product passes three stages. Hours are hours of receipt (UTC); ${hasLinks(state) ? 'an hour in a chart opens its list' : 'the tables link to the list of each hour'}. Percentiles are nearest ranks: 90 % of the delays are not longer than p90.</p>
${totalsPanel(found)}
${delayStages.map((stage) => stagePanel(stage, { ...found, collections: shown }, { request, collection }))}`;
}

/** Percentiles of the stages cannot be added, so the delays over all stages are measured, too. */
function totalsPanel({ total: { sensingToReceipt, publicationToReceipt } }: Timeliness): Html {
  const rows = [
    { name: 'Sensing to receipt', delays: sensingToReceipt },
    { name: 'Publication to receipt', delays: publicationToReceipt },
  ].flatMap(({ name, delays }) => (delays === null ? [] : [{ name, delays }]));
  const body =
    rows.length === 0
      ? emptyState('No push of a created product was received in this period.')
      : html`<div class="totals">${rows.map(
          ({ name, delays }) => html`<div><h3>${name}</h3>
<dl class="figures">${figuresOf(delays).map(([figure, value]) => html`<div><dt>${figure}</dt><dd>${value}</dd></div>`)}</dl></div>`,
        )}</div>
<p class="note">Counted: pushes of created products. Recovered notifications are excluded. Percentiles of the stages below cannot be added to these.</p>`;
  return panel('Total delay', body, 'of the whole period');
}

interface Shown {
  request: PageRequest;
  collection: string | undefined;
}

function stagePanel(stage: DelayStage, found: Timeliness, shown: Shown): Html {
  const { title, meaning, counted, negative } = stageTexts[stage];
  const total = found.total[stage];
  const intro = html`<div><p class="flush">${withCommands(meaning)}</p><p class="note">Counted: ${counted}</p></div>`;
  if (total === null) {
    const reason = 'No notification of this period has both dates of this stage.';
    return panel(title, html`${intro}${emptyState(reason)}`);
  }
  return panel(
    title,
    html`${intro}
<dl class="figures">${figuresOf(total).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
${total.negative === 0 ? '' : html`<p class="lag">${countText(total.negative)} of ${countText(total.count)} delays are negative. ${negative} The chart shows them at “≤ 0 s”.</p>`}
${legend()}
${charts(stage, found, { ...shown, total })}
${collectionTable(stage, found, shown)}
${hourTable(stage, found, shown)}`,
  );
}

function figuresOf({ count: counted, p50Ms, p90Ms, p99Ms, maxMs }: DelayPercentiles) {
  return [
    ['median', delayText(p50Ms)],
    ['p90', delayText(p90Ms)],
    ['p99', delayText(p99Ms)],
    ['maximum', delayText(maxMs)],
    ['delays', countText(counted)],
  ] as const;
}

/** `46 s`, `−1.5 s`. */
function delayText(ms: number): string {
  return ms < 0 ? `−${spanText(-ms / 1_000)}` : spanText(ms / 1_000);
}

function legend(): Html {
  const texts = { p50: 'median (p50)', p90: 'p90', p99: 'p99' };
  return html`<ul class="legend">${percentileLines.map(
    (name) =>
      html`<li><svg class="chart key" viewBox="0 0 28 10" aria-hidden="true"><path class="line ${name}" d="M1,5 27,5"/></svg>${texts[name]}</li>`,
  )}<li><svg class="chart key" viewBox="0 0 28 10" aria-hidden="true"><path class="band" d="M1,0 27,0 27,10 1,10Z"/></svg>from median to p90</li></ul>`;
}

/** Draws the chart for a wide and for a narrow window; the style sheet shows one of them. */
function charts(
  stage: DelayStage,
  found: Timeliness,
  { total, ...shown }: Shown & { total: DelayPercentiles },
): Html {
  const points = pointsOf(stage, found, shown);
  const axis = axisOf(stage, total, shown.request);
  const unlinked = points.map((point) => ({ ...point, href: undefined }));
  return html`<div><div class="for-wide">${delayChart(points, { ...axis, width: 900 })}</div>
<div class="for-narrow">${delayChart(unlinked, { ...axis, width: 400 })}</div></div>`;
}

function axisOf(
  stage: DelayStage,
  total: DelayPercentiles,
  { state: { sinceUs, untilUs } }: PageRequest,
) {
  const fromUs = hourOf(sinceUs);
  const toUs = hourOf(untilUs - 1) + hourUs;
  const label = `${stageTexts[stage].title}, percentiles by hour: median ${delayText(total.p50Ms)}, maximum ${delayText(total.maxMs)}`;
  return { fromUs, toUs, label };
}

function pointsOf(stage: DelayStage, { hours }: Timeliness, shown: Shown): DelayPoint[] {
  const isLinked = hasLinks(shown.request.state);
  return hours.flatMap(({ hourUs: fromUs, [stage]: delays }) => {
    if (delays === null) return [];
    const toUs = fromUs + hourUs;
    const figures = figuresOf(delays).map(([name, value]) => `${name} ${value}`);
    const [p50, p90, p99] = [delays.p50Ms / 1_000, delays.p90Ms / 1_000, delays.p99Ms / 1_000];
    const href = isLinked ? listOfHour(fromUs, shown) : undefined;
    const title = `${shortDateUs(fromUs)} UTC: ${figures.join(', ')}`;
    return { fromUs, toUs, p50, p90, p99, href, title };
  });
}

function hasLinks({ sinceUs, untilUs }: PageState): boolean {
  return untilUs - sinceUs <= linkedHoursMax * hourUs;
}

function listOfHour(fromUs: number, { request, collection }: Shown): string {
  const { subscription } = request.state;
  const name = collection?.replaceAll("'", "''");
  const filter = name === undefined ? undefined : `Collection/Name eq '${name}'`;
  return listOfSpan(fromUs, fromUs + hourUs, { subscription, filter });
}

type Row = { name: Html | string; delays: DelayPercentiles };

function columnsOf(title: string): TableColumn<Row>[] {
  return [
    { title, value: ({ name }) => name, class: 'whole' },
    {
      ...{ title: 'delays', isNumber: true, class: 'for-wide' },
      value: ({ delays }) => countText(delays.count),
    },
    { title: 'median', value: ({ delays }) => delayText(delays.p50Ms), isNumber: true },
    { title: 'p90', value: ({ delays }) => delayText(delays.p90Ms), isNumber: true },
    { title: 'p99', value: ({ delays }) => delayText(delays.p99Ms), isNumber: true },
    { title: 'maximum', value: ({ delays }) => delayText(delays.maxMs), isNumber: true },
  ];
}

function collectionTable(
  stage: DelayStage,
  { collections }: Timeliness,
  { request: { state } }: Shown,
): Html {
  const rows = collections.flatMap(({ collection, [stage]: delays }): Row[] => {
    if (delays === null) return [];
    const link = linkTo('/timeliness', { ...sharedState(state), collection });
    const name = collection === null ? 'unknown' : html`<a href="${link}">${collection}</a>`;
    return [{ name, delays }];
  });
  return table(columnsOf('collection'), rows, {
    caption: `${stageTexts[stage].title} by collection`,
  });
}

/** The figures of the chart, newest hour first. */
function hourTable(stage: DelayStage, { hours }: Timeliness, shown: Shown): Html {
  const rows = hours.toReversed().flatMap(({ hourUs: at, [stage]: delays }): Row[] => {
    if (delays === null) return [];
    return [{ name: html`<a href="${listOfHour(at, shown)}">${shortDateUs(at)}</a>`, delays }];
  });
  const more = rows.length - listedHoursMax;
  const caption = `${stageTexts[stage].title} by hour`;
  return html`<details class="numbers"><summary>By hour, as a table</summary>
${table(columnsOf('hour of receipt (UTC)'), rows.slice(0, listedHoursMax), { caption })}
${more <= 0 ? '' : html`<p class="note">And ${countText(more)} older hours: <a href="/api/timeliness">/api/timeliness</a></p>`}
</details>`;
}

export const pages = [timelinessPage];

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  { route: timelinessRoute(parts), line: 'products' },
];
