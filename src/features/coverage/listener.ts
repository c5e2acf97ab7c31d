/** The page and the API of coverage. */

import { z } from 'zod';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  periodDaysMax,
  periodOf,
} from '../../core/api/api-route.ts';
import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import {
  choice,
  type PageRoute,
  periodChoice,
  stateForm,
  subscriptionNames,
} from '../../core/page/layout.ts';
import { html } from '../../core/page/markup.ts';
import type { PageState } from '../../core/page/page-state.ts';
import { renderReport } from '../../core/page/render-report.ts';
import { weekUs } from '../../core/terms/dates.ts';
import { jsonSchemaOf } from '../../core/terms/json-rows.ts';
import * as report from '../../core/terms/report.ts';
import { coverageSchema, readSubscriptionCoverage, toCoverageJson } from './coverage.ts';
import { coverageReport } from './report.ts';
import { comparisonOffBy } from './settings.ts';

const back = '7d';

const coveragePage: PageRoute = {
  path: '/coverage',
  label: 'Coverage',
  group: 'data',
  scope: ['period', 'subscription'],
  parts: ['coverage'],
  back,
  list: async (parts, { state, nowUs }) => {
    const { sinceUs, untilUs, subscription } = state;
    const [reports, names] = await Promise.all([
      readSubscriptionCoverage(parts.completeness, { sinceUs, untilUs, subscription, nowUs }),
      subscriptionNames(parts),
    ]);
    const options = [['', 'all'], ...names.map((name) => [name, name] as const)] as const;
    const shown =
      reports.length === 0
        ? { title: 'Coverage', blocks: [nothing(state)] }
        : coverageReport(reports, { comparisonOff: comparisonOffBy(parts), nowUs });
    return {
      title: 'Coverage',
      refresh: state.until === undefined,
      controls: stateForm(
        '/coverage',
        html`${choice('subscription', 'subscription', options, subscription)}${periodChoice(state, back)}`,
      ),
      body: renderReport(shown, nowUs),
    };
  },
};

function nothing({ subscription }: PageState): report.Block {
  return subscription === undefined
    ? report.empty(
        'No subscription was registered in this period, so no event was expected.',
        'Register one: `earshot register`.',
      )
    : report.empty(`The subscription ${subscription} was not registered in this period.`);
}

const coverageQuery = z.strictObject({
  since: dateParameter
    .optional()
    .describe('Start of the first hour, ISO 8601. The default is seven days before `until`.'),
  until: dateParameter.optional().describe('End of the last hour, ISO 8601. The default is now.'),
  subscription: z.string().optional(),
});

/** `/api/coverage`. */
function coverageRoute(parts: Pick<ConsoleParts, 'completeness' | 'setting' | 'nowUs'>): ApiRoute {
  return apiRoute({
    path: '/api/coverage',
    operationId: 'showCoverage',
    summary: 'Coverage by hour: expected, received and missing notifications',
    description: `An event belongs to the hour of its date in the catalogue. A request can cover at most ${periodDaysMax} days.`,
    query: coverageQuery,
    answer: jsonSchemaOf(coverageSchema),
    respond: async ({ since, until, subscription }) => {
      const nowUs = parts.nowUs();
      const period = periodOf({ since, until }, { nowUs, backUs: weekUs });
      const question = { ...period, subscription, nowUs };
      const reports = await readSubscriptionCoverage(parts.completeness, question);
      return { body: toCoverageJson(reports, question, comparisonOffBy(parts)) };
    },
  });
}

export const pages = [coveragePage];

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  { route: coverageRoute(parts), line: 'log' },
];
