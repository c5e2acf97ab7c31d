/** Coverage of the last days in one line per subscription: a cell per day, with text and colour. */
import {
  type HourState,
  hourStates,
  notComparedText,
  type ReportedHour,
  type SubscriptionCoverage,
} from '../../domain/coverage.ts';
import { shortDateUs } from '../../domain/dates.ts';
import { dayUs } from '../../domain/time-units.ts';
import { badge, count, type Html, html, type Tone } from './markup.ts';
import { isoMinute, linkTo } from './page-state.ts';

/** Names and colours of the states of an hour, as on the page of coverage. */
export const stateLooks: Readonly<Record<HourState, { text: string; tone: Tone; sign: string }>> = {
  pushed: { text: 'complete', tone: 'good', sign: '✓' },
  quiet: { text: 'no events', tone: 'good', sign: '·' },
  late: { text: 'late', tone: 'warn', sign: 'L' },
  recovered: { text: 'recovered', tone: 'note', sign: 'R' },
  missing: { text: 'missing', tone: 'bad', sign: '!' },
  unknown: { text: 'not compared', tone: 'plain', sign: '?' },
  pending: { text: 'not due', tone: 'plain', sign: '…' },
  pruned: { text: 'pruned', tone: 'plain', sign: '–' },
  outside: { text: 'no subscription', tone: 'plain', sign: '' },
};

/** Draws one row per subscription. */
export function coverageStrip(
  reports: readonly SubscriptionCoverage[],
  { comparisonOff, nowUs }: { comparisonOff: string | null; nowUs: number },
): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Coverage by day"><table class="strip"><caption class="visually-hidden">Coverage by day</caption><tbody>${reports.map(
    (report) => {
      const days = Map.groupBy(report.hours, ({ hourUs }) => hourUs - (hourUs % dayUs));
      const { complete, missing } = report;
      const total =
        complete === null
          ? badge('plain', 'not compared')
          : missing > 0
            ? badge('bad', `${count(missing)} missing`)
            : badge('good', 'nothing missing');
      const reason =
        complete === null
          ? html`<tr><td class="reason" colspan="${days.size + 1}">${notComparedText(report, { comparisonOff, nowUs })}</td></tr>`
          : '';
      return html`<tr><th scope="row">${report.subscription}${total}</th>
${[...days].map(([dayAtUs, hours]) => dayCell(dayAtUs, hours, { ...report, nowUs }))}</tr>${reason}`;
    },
  )}</tbody></table></div>`;
}

function dayCell(
  dayAtUs: number,
  hours: readonly ReportedHour[],
  { subscription, nowUs }: { subscription: string; nowUs: number },
): Html {
  // The first of `hourStates` that a due hour has; hours that are not due yet say nothing about the day.
  const known = hours.filter(({ state }) => state !== 'pending' && state !== 'outside');
  const considered = known.length === 0 ? hours : known;
  const severity: readonly HourState[] = ['missing', 'unknown', 'recovered', 'late', ...hourStates];
  const worst =
    severity.find((state) => considered.some((hour) => hour.state === state)) ?? 'outside';
  const { text, tone, sign } = stateLooks[worst];
  const day = shortDateUs(dayAtUs).slice(5, 10);
  const missing = hours.reduce((sum, one) => sum + one.missing, 0);
  const title = `${day}: ${text}${missing > 0 ? `, ${count(missing)} missing` : ''}`;
  // Without an end, the page of today refreshes.
  const endUs = dayAtUs + dayUs;
  const until = endUs > nowUs ? undefined : isoMinute(endUs);
  const href = linkTo('/coverage', { subscription, until });
  return html`<td><a class="cell ${tone}" href="${href}" title="${title}"><span class="visually-hidden">${title}</span><span aria-hidden="true">${sign}</span><small aria-hidden="true">${day.slice(3)}</small></a></td>`;
}
