/** The page `/coverage`: by hour, which events of the catalogue are in the log, and which are missing. */

import { choice, periodChoice, stateForm } from '../../core/page/layout.ts';
import { html } from '../../core/page/markup.ts';
import { type PageRoute, subscriptionNames } from '../../core/page/page-route.ts';
import type { PageState } from '../../core/page/page-state.ts';
import { renderReport } from '../../core/page/render-report.ts';
import * as report from '../../core/terms/report.ts';
import { readSubscriptionCoverage } from './coverage.ts';
import { coverageReport } from './report.ts';

const back = '7d';

export const coveragePage: PageRoute = {
  path: '/coverage',
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
        : coverageReport(reports, null, { comparisonOff: parts.comparisonOff(), nowUs });
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
