/** The page `/timeliness`: delays from sensing to receipt, each stage separately. */

import { z } from 'zod';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  periodDaysMax,
  periodOf,
} from '../../core/api/api-route.ts';
import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import { spanText } from '../../core/page/browser/texts.ts';
import { type DelayPoint, delayChart, percentileLines } from '../../core/page/charts.ts';
import {
  choice,
  indexLag,
  lagNote,
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
import { dayUs, hourOf, hourUs, shortDateUs } from '../../core/terms/dates.ts';
import { jsonSchemaOf, toJson } from '../../core/terms/json-rows.ts';
import { countText } from '../../core/terms/text.ts';
import {
  type DelayPercentiles,
  type DelayStage,
  delayStages,
  type Products,
  periodDelays,
  stageDelays,
  type Timeliness,
} from '../../filter/products.ts';
import { lagHeader, lagHeaders } from '../products/route.ts';

/** With more hours, the charts have no links. */
const linkedHoursMax = 750;

const back = '24h';

/** Texts of a stage. `negative` has the cause of negative delays, and the next step. */
const stageTexts: Readonly<
  Record<DelayStage, Record<'title' | 'meaning' | 'counted' | 'negative', string>>
> = {
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

const timelinessPage: PageRoute = {
  path: '/timeliness',
  label: 'Timeliness',
  group: 'data',
  scope: ['period', 'subscription'],
  back,
  list: async (parts, { state, url, signal }) => {
    const collection = url.searchParams.get('collection')?.trim() || undefined;
    const { sinceUs, untilUs, subscription } = state;
    const query = { sinceUs, untilUs, subscription, collection };
    const [lag, found] = await Promise.all([
      indexLag(parts),
      parts.products.timeliness(query, signal),
    ]).catch((error: unknown) => {
      if (isAppError(error, 'unavailable')) return [0, null] as const;
      throw error;
    });
    const choiceOf = (label: string, names: readonly (string | null)[], chosen?: string) => {
      const options = names.flatMap((name) => (name === null ? [] : [[name, name] as const]));
      return choice(label, label, [['', 'all'], ...options], chosen);
    };
    const collections = found?.collections.map((one) => one.collection) ?? [];
    return {
      title: 'Timeliness',
      refresh: state.until === undefined,
      controls: stateForm(
        '/timeliness',
        html`${choiceOf('subscription', await subscriptionNames(parts), subscription)}
${choiceOf('collection', collections, collection)}
${periodChoice(state, back)}`,
      ),
      body: html`${lagNote(lag)}${found === null ? unavailable : panels({ ...found, state, collection })}`,
    };
  },
};

/** The delays, and what the page shows of them. */
interface Shown extends Timeliness {
  state: PageState;
  collection: string | undefined;
}

const unavailable = panel(
  'Delays',
  emptyState(
    'Delays cannot be shown: there is no product index, or it cannot be read.',
    withCommands(
      'Check that `EARSHOT_INDEX` is not `off`, and the state of the receiver: `earshot status`',
    ),
  ),
);

function panels(shown: Shown): Html {
  const { since, until } = shown.state;
  if (shown.hours.length === 0) {
    const next = html`Choose a longer period or <a href="${linkTo('/timeliness', { since, until })}">all subscriptions and collections</a>, or check the <a href="/subscriptions">subscriptions</a>.`;
    return panel('Delays', emptyState('No notification was received in this period.', next));
  }
  return html`<p class="note">Each product passes three stages. Hours are hours of receipt (UTC).${hasLinks(shown) ? ' An hour in a chart opens its list.' : ''} Percentiles are nearest ranks: 90 % of the delays are not longer than p90.</p>
${totalsPanel(shown)}
${delayStages.map((stage) => stagePanel(stage, shown))}`;
}

/** Percentiles of the stages cannot be added, so the delays over all stages are measured, too. */
function totalsPanel({ total: { sensingToReceipt, publicationToReceipt } }: Shown): Html {
  const of = (name: string, delays: DelayPercentiles | null) =>
    delays === null ? [] : [html`<div><h3>${name}</h3>${figures(delays)}</div>`];
  const totals = [
    ...of('Sensing to receipt', sensingToReceipt),
    ...of('Publication to receipt', publicationToReceipt),
  ];
  const body =
    totals.length === 0
      ? emptyState('No push of a created product was received in this period.')
      : html`<div class="totals">${totals}</div>
<p class="note">Counted: pushes of created products. Recovered notifications are excluded. Percentiles of the stages below cannot be added to these.</p>`;
  return panel('Total delay', body, 'of the whole period');
}

function stagePanel(stage: DelayStage, shown: Shown): Html {
  const { title, meaning, counted, negative } = stageTexts[stage];
  const total = shown.total[stage];
  const intro = html`<div><p class="flush">${withCommands(meaning)}</p><p class="note">Counted: ${counted}</p></div>`;
  if (total === null) {
    const reason = 'No notification of this period has both dates of this stage.';
    return panel(title, html`${intro}${emptyState(reason)}`);
  }
  return panel(
    title,
    html`${intro}
${figures(total)}
${total.negative === 0 ? '' : html`<p class="lag">${countText(total.negative)} of ${countText(total.count)} delays are negative. ${negative} The chart shows them at “≤ 0 s”.</p>`}
${legend}
${chart(stage, shown, total)}
${collectionTable(stage, shown)}`,
  );
}

function figuresOf({ count: counted, p50, p90, p99, max }: DelayPercentiles) {
  return [
    ['median', delayText(p50)],
    ['p90', delayText(p90)],
    ['p99', delayText(p99)],
    ['maximum', delayText(max)],
    ['delays', countText(counted)],
  ] as const;
}

function figures(delays: DelayPercentiles): Html {
  const list = figuresOf(delays);
  return html`<dl class="figures">${list.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** `46 s`, `−1.5 s`. */
function delayText(seconds: number): string {
  return seconds < 0 ? `−${spanText(-seconds)}` : spanText(seconds);
}

const legendTexts = { p50: 'median (p50)', p90: 'p90', p99: 'p99' };
const legend = html`<ul class="legend">${percentileLines.map(
  (name) =>
    html`<li><svg class="chart key" viewBox="0 0 28 10" aria-hidden="true"><path class="line ${name}" d="M1,5 27,5"/></svg>${legendTexts[name]}</li>`,
)}</ul>`;

function chart(stage: DelayStage, shown: Shown, total: DelayPercentiles): Html {
  const { sinceUs, untilUs } = shown.state;
  const label = `${stageTexts[stage].title}, percentiles by hour: median ${delayText(total.p50)}, maximum ${delayText(total.max)}`;
  const points = shown.hours.flatMap(({ hourUs: fromUs, [stage]: delays }): DelayPoint[] => {
    if (delays === null) return [];
    const list = figuresOf(delays).map(([name, value]) => `${name} ${value}`);
    const { p50, p90, p99 } = delays;
    const title = `${shortDateUs(fromUs)} UTC: ${list.join(', ')}`;
    const href = hasLinks(shown) ? listOfHour(fromUs, shown) : undefined;
    return [{ fromUs, toUs: fromUs + hourUs, p50, p90, p99, title, href }];
  });
  const period = { fromUs: hourOf(sinceUs), toUs: hourOf(untilUs - 1) + hourUs };
  return delayChart(points, { ...period, label });
}

function hasLinks({ state: { sinceUs, untilUs } }: Shown): boolean {
  return untilUs - sinceUs <= linkedHoursMax * hourUs;
}

function listOfHour(fromUs: number, { state: { subscription }, collection }: Shown): string {
  const filter = collection && `Collection/Name eq '${collection.replaceAll("'", "''")}'`;
  return listOfSpan(fromUs, fromUs + hourUs, { subscription, filter });
}

type Row = { collection: string | null; delays: DelayPercentiles };

function collectionTable(stage: DelayStage, { collections, collection: only, state }: Shown): Html {
  const rows = collections.flatMap(({ collection, [stage]: delays }): Row[] =>
    delays === null || (only !== undefined && only !== collection) ? [] : [{ collection, delays }],
  );
  const nameOf = ({ collection }: Row) => {
    const link = linkTo('/timeliness', { ...sharedState(state), collection });
    return collection === null ? 'unknown' : html`<a href="${link}">${collection}</a>`;
  };
  const columns: TableColumn<Row>[] = [
    { title: 'collection', value: nameOf, class: 'whole' },
    {
      ...{ title: 'delays', isNumber: true, class: 'rank-4' },
      value: ({ delays }) => countText(delays.count),
    },
    { title: 'median', value: ({ delays }) => delayText(delays.p50), isNumber: true },
    { title: 'p90', value: ({ delays }) => delayText(delays.p90), isNumber: true },
    { title: 'p99', value: ({ delays }) => delayText(delays.p99), isNumber: true },
    { title: 'maximum', value: ({ delays }) => delayText(delays.max), isNumber: true },
  ];
  return table(columns, rows, { caption: `${stageTexts[stage].title} by collection` });
}

export const pages = [timelinessPage];

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  { route: timelinessRoute(parts), line: 'products' },
];

const query = z.strictObject({
  since: dateParameter
    .optional()
    .describe('Start of the period of receipt, ISO 8601. The default is 24 hours before `until`.'),
  until: dateParameter.optional().describe('End of the period, ISO 8601. The default is now.'),
  subscription: z.string().optional(),
  collection: z.string().optional().describe('Only products of this collection.'),
});

const answer = z.object({
  sinceUs: z.number(),
  untilUs: z.number(),
  total: z.object(periodDelays).describe('Delays of the whole period, in seconds.'),
  hours: z
    .array(z.object({ hourUs: z.number().describe('Start of the hour.'), ...stageDelays }))
    .describe('Delays by hour of receipt, in seconds. Hours without notifications are absent.'),
  collections: z
    .array(
      z.object({
        collection: z.string().nullable().describe('Null for products of no known collection.'),
        ...stageDelays,
      }),
    )
    .describe('Delays by collection, in seconds.'),
});

function timelinessRoute(parts: { products: Products; nowUs: () => number }): ApiRoute {
  const { products, nowUs } = parts;
  return apiRoute({
    path: '/api/timeliness',
    operationId: 'showTimeliness',
    summary: 'Delays from sensing to receipt, by hour and by collection',
    description: `Percentiles are nearest ranks, within 1 %. Recovered notifications have no NotificationDate and count only for the first stage; deleted and modified products count only for the last one. Negative delays are possible: the clocks disagree. A request can cover at most ${periodDaysMax} days.`,
    query,
    answer: jsonSchemaOf(answer),
    headers: {
      [lagHeader]: 'Number of notifications not indexed yet. Absent when there are none.',
    },
    respond: async ({ since, until, subscription, collection }, _url, signal) => {
      const period = periodOf({ since, until }, { nowUs: nowUs(), backUs: dayUs });
      // Read first: if the index catches up meanwhile, the answer is newer than the header states.
      const headers = await lagHeaders(products);
      const found = await products.timeliness({ ...period, subscription, collection }, signal);
      const shown = found.collections.filter(
        (one) => collection === undefined || one.collection === collection,
      );
      return { body: toJson(answer, { ...period, ...found, collections: shown }), headers };
    },
  });
}
