/** Coverage as tables of cells: by hour of each day, and one line of days per subscription. */

import { badge, type Html, html, panel } from '../../core/page/markup.ts';
import { isoMinute, linkTo, listOfSpan } from '../../core/page/page-state.ts';
import { shortDateUs } from '../../core/terms/dates.ts';
import { countText } from '../../core/terms/formats.ts';
import { dayUs, hourUs } from '../../core/terms/time-units.ts';
import type { HourState, ReportedHour, SubscriptionCoverage } from './coverage.ts';
import { hourLooks, occurringStates, worstState } from './report.ts';

const hoursOfDay = Array.from({ length: 24 }, (_, hour) => hour);

/** Renders a panel per subscription with a row for each day, newest first, and the legend. */
export function hourTables(reports: readonly SubscriptionCoverage[]): Html {
  const all = reports.flatMap(({ hours }) => hours);
  const legend = occurringStates(all).map((state) => {
    const { label, tone, sign } = hourLooks[state];
    return html`<li><span class="cell ${state === 'outside' ? 'outside' : tone}" aria-hidden="true">${sign}</span> ${label}</li>`;
  });
  return html`${reports.map(hourTable)}<ul class="legend">${legend}</ul>
<p class="note">A number counts the missing, recovered or late events; in a complete hour, all events. A cell opens the notifications received in this hour; events are counted by their date in the catalogue.</p>`;
}

function hourTable({ subscription, hours }: SubscriptionCoverage): Html {
  const byDay = [...Map.groupBy(hours, ({ hourUs: at }) => at - (at % dayUs))];
  // Begins with the first day of the subscription.
  const first = byDay.findIndex(([, own]) => own.some(({ state }) => state !== 'outside'));
  const days = byDay.slice(Math.max(0, first)).toReversed();
  const caption = `Coverage of ${subscription} by day and hour (UTC)`;
  return panel(
    subscription,
    html`<div class="scroll by-hour" tabindex="0" role="region" aria-label="${caption}"><table class="hours">
<caption class="visually-hidden">${caption}</caption>
<thead><tr><th scope="col">day</th>${hoursOfDay.map((hour) => html`<th scope="col">${String(hour).padStart(2, '0')}</th>`)}</tr></thead>
<tbody>${days.map(([dayAtUs, own]) => {
      const byHour = new Map(own.map((one) => [Math.round((one.hourUs - dayAtUs) / hourUs), one]));
      return html`<tr><th scope="row">${weekday(dayAtUs)} ${shortDateUs(dayAtUs).slice(5, 10)}</th>
${hoursOfDay.map((hour) => hourCell(byHour.get(hour), subscription))}</tr>`;
    })}</tbody></table></div>`,
    'events by the hour of their date in the catalogue, UTC',
  );
}

const weekday = (us: number) =>
  new Date(us / 1_000).toLocaleDateString('en-GB', { weekday: 'short', timeZone: 'UTC' });

function hourCell(hour: ReportedHour | undefined, subscription: string): Html {
  if (hour === undefined) return html`<td></td>`;
  const { state, hourUs: at, expected, pushed, late, recovered, missing } = hour;
  const { label, tone, sign } = hourLooks[state];
  const counts =
    expected === 0
      ? ''
      : `. Expected ${countText(expected)}, received ${countText(pushed + late)}, recovered ${countText(recovered)}, late ${countText(late)}, missing ${countText(missing)}`;
  const title = `${shortDateUs(at)} UTC: ${label}${counts}`;
  if (state === 'outside')
    return html`<td><span class="cell outside" title="${title}"></span></td>`;
  const href = listOfSpan(at, at + hourUs, { subscription });
  return html`<td><a class="cell ${tone}" href="${href}" title="${title}"><span class="visually-hidden">${label}</span><span aria-hidden="true">${sign}</span><small>${shownCount(hour)}</small></a></td>`;
}

/** Returns the count that explains the state. */
function shownCount({ state, expected, ...counts }: ReportedHour): string {
  const shown: Partial<Record<HourState, number>> = { ...counts, pushed: expected };
  const count = shown[state];
  if (count === undefined) return '';
  return count < 1_000 ? String(count) : `${Math.floor(count / 1_000)}k`;
}

/** Renders one row per subscription, with a cell for each day. */
export function dayStrip(reports: readonly SubscriptionCoverage[], nowUs: number): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Coverage by day"><table class="strip"><caption class="visually-hidden">Coverage by day</caption><tbody>${reports.map(
    ({ subscription, hours, complete, missing }) => {
      const total =
        complete === null
          ? badge('plain', 'not compared')
          : missing > 0
            ? badge('bad', `${countText(missing)} missing`)
            : badge('good', 'nothing missing');
      const days = Map.groupBy(hours, ({ hourUs: at }) => at - (at % dayUs));
      return html`<tr><th scope="row">${subscription}${total}</th>
${[...days].map(([dayAtUs, own]) => dayCell(dayAtUs, own, { subscription, nowUs }))}</tr>`;
    },
  )}</tbody></table></div>`;
}

function dayCell(
  dayAtUs: number,
  hours: readonly ReportedHour[],
  { subscription, nowUs }: { subscription: string; nowUs: number },
): Html {
  const { label, tone, sign } = hourLooks[worstState(hours.map(({ state }) => state))];
  const day = shortDateUs(dayAtUs).slice(5, 10);
  const missing = hours.reduce((sum, one) => sum + one.missing, 0);
  const title = `${day}: ${label}${missing > 0 ? `, ${countText(missing)} missing` : ''}`;
  // Without an end, the page of today refreshes.
  const endUs = dayAtUs + dayUs;
  const href = linkTo('/coverage', {
    subscription,
    until: endUs > nowUs ? undefined : isoMinute(endUs),
  });
  return html`<td><a class="cell ${tone}" href="${href}" title="${title}"><span class="visually-hidden">${title}</span><span aria-hidden="true">${sign}</span><small aria-hidden="true">${day.slice(3)}</small></a></td>`;
}
