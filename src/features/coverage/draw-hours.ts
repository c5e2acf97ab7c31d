/** Hours of coverage as pictures: characters on the terminal, readable without colours, and cells on the page. */

import type { painter } from '../../core/cli/output.ts';
import { badge, type Html, html, panel } from '../../core/page/markup.ts';
import { isoMinute, linkTo, listOfSpan } from '../../core/page/page-state.ts';
import { dayUs, formatDateUs, hourUs, shortDateUs } from '../../core/terms/dates.ts';
import type { Block } from '../../core/terms/report.ts';
import { countText } from '../../core/terms/text.ts';
import type { HourState, ReportedHour, SubscriptionCoverage } from './coverage.ts';

/** Name, tone and signs of each state of an hour: `bar` on the terminal, `sign` on the page. The worst is first. */
const hourLooks = {
  missing: { label: 'missing', tone: 'bad', sign: '!', bar: '!' },
  unknown: { label: 'not compared', tone: 'plain', sign: '?', bar: '?' },
  recovered: { label: 'recovered', tone: 'note', sign: 'R', bar: '▒' },
  late: { label: 'late', tone: 'warn', sign: 'L', bar: '▓' },
  pushed: { label: 'pushed', tone: 'good', sign: '✓', bar: '█' },
  quiet: { label: 'no event', tone: 'good', sign: '·', bar: '░' },
  pruned: { label: 'pruned', tone: 'plain', sign: '–', bar: '-' },
  pending: { label: 'not due', tone: 'plain', sign: '…', bar: '·' },
  outside: { label: 'no subscription', tone: 'plain', sign: '', bar: ' ' },
} as const satisfies Record<HourState, object>;

const worstFirst = Object.keys(hourLooks) as HourState[];

/** Returns the worst state of some hours; hours that are not due say nothing about a day with others. */
function worstState(states: readonly HourState[]): HourState {
  return worstFirst.find((state) => states.includes(state)) ?? 'outside';
}

/** Returns the states that occur, the best first. */
function occurringStates(hours: readonly Pick<ReportedHour, 'state'>[]): HourState[] {
  return worstFirst.filter((state) => hours.some((hour) => hour.state === state)).toReversed();
}

/** The hours of each subscription, with the legend. */
export const hoursBlock = (reports: readonly SubscriptionCoverage[]): Block => ({
  kind: 'drawn',
  lines: (paint) => [
    ...reports.flatMap(({ subscription, hours }) => [
      subscription,
      ...stripLines(hours, paint),
      '',
    ]),
    stripLegend(
      reports.flatMap(({ hours }) => hours),
      paint,
    ),
  ],
  panels: () => hourTables(reports),
});

type Paint = ReturnType<typeof painter>;

const colours = { bad: 'red', warn: 'cyan', note: 'yellow', good: 'green', plain: 'dim' } as const;

/** Maximum number of days shown by hour. */
const hourlyDaysMax = 14;

const cellsPerLine = 61;

/**
 * Lines such as `  2026-11-14  ██▒█…` with 24 hours each; for more than two weeks, one character per day. They begin
 * with the first day that has any state.
 */
export function stripLines(hours: readonly ReportedHour[], paint: Paint): string[] {
  const days = byDay(hours);
  const shown = fromFirst(days);
  const line = (day: number, states: readonly HourState[]) =>
    `  ${formatDateUs(day).slice(0, 10)}  ${painted(states, paint)}`;
  if (days.length <= hourlyDaysMax) return shown.map(([day, own]) => line(day, statesOf(own)));
  const worst = shown.map(([, own]) => worstState(statesOf(own)));
  const starts = worst.flatMap((_, i) => (i % cellsPerLine === 0 ? [i] : []));
  return starts.map((at) => line(shown[at]?.[0] ?? 0, worst.slice(at, at + cellsPerLine)));
}

/** Legend of the characters that occur. */
export function stripLegend(hours: readonly ReportedHour[], paint: Paint): string {
  const shown = occurringStates(hours).filter((state) => state !== 'outside');
  const parts = shown.map((state) => `${painted([state], paint)} ${hourLooks[state].label}`);
  return `${parts.join('   ')}   (UTC)`;
}

const hoursOfDay = Array.from({ length: 24 }, (_, hour) => hour);

/** A day with its 24 hours; those before the first and after the last hour of a report are undefined. */
type Day = readonly [dayAtUs: number, hours: readonly (ReportedHour | undefined)[]];

/** Groups hours by day. */
function byDay(hours: readonly ReportedHour[]): Day[] {
  const byHour = new Map(hours.map((hour) => [hour.hourUs, hour]));
  const days = new Set(hours.map(({ hourUs: at }) => at - (at % dayUs)));
  return [...days].map((day) => [day, hoursOfDay.map((hour) => byHour.get(day + hour * hourUs))]);
}

const statesOf = (hours: Day[1]) => hours.map((hour) => hour?.state ?? 'outside');

/** Returns the days from the first of the subscription on. */
function fromFirst(days: readonly Day[]): readonly Day[] {
  const first = days.findIndex(([, own]) => worstState(statesOf(own)) !== 'outside');
  return days.slice(Math.max(0, first));
}

/** Colours neighbours of the same state together. */
function painted(states: readonly HourState[], paint: Paint): string {
  let text = '';
  for (let at = 0; at < states.length; ) {
    const state = states[at] ?? 'outside';
    let end = at;
    while (states[end] === state) end += 1;
    const { tone, bar } = hourLooks[state];
    text += paint(colours[tone], bar.repeat(end - at));
    at = end;
  }
  return text;
}

/** Renders a panel per subscription with a row for each day, newest first, and the legend. */
function hourTables(reports: readonly SubscriptionCoverage[]): Html {
  const all = reports.flatMap(({ hours }) => hours);
  const legend = occurringStates(all).map((state) => {
    const { label, tone, sign } = hourLooks[state];
    return html`<li><span class="cell ${state === 'outside' ? 'outside' : tone}" aria-hidden="true">${sign}</span> ${label}</li>`;
  });
  return html`${reports.map(hourTable)}<ul class="legend">${legend}</ul>
<p class="note">A number counts the missing, recovered or late events; in a complete hour, all events. A cell opens the notifications received in this hour; events are counted by their date in the catalogue.</p>`;
}

function hourTable({ subscription, hours }: SubscriptionCoverage): Html {
  const days = fromFirst(byDay(hours)).toReversed();
  const caption = `Coverage of ${subscription} by day and hour (UTC)`;
  return panel(
    subscription,
    html`<div class="scroll by-hour" tabindex="0" role="region" aria-label="${caption}"><table class="hours">
<caption class="visually-hidden">${caption}</caption>
<thead><tr><th scope="col">day</th>${hoursOfDay.map((hour) => html`<th scope="col">${String(hour).padStart(2, '0')}</th>`)}</tr></thead>
<tbody>${days.map(
      ([dayAtUs, own]) =>
        html`<tr><th scope="row">${weekday(dayAtUs)} ${shortDateUs(dayAtUs).slice(5, 10)}</th>
${own.map((hour) => hourCell(hour, subscription))}</tr>`,
    )}</tbody></table></div>`,
    'events by the hour of their date in the catalogue, UTC',
  );
}

const weekday = (us: number) => new Date(us / 1_000).toUTCString().slice(0, 3);

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
      return html`<tr><th scope="row">${subscription}${total}</th>
${byDay(hours).map((day) => dayCell(day, { subscription, nowUs }))}</tr>`;
    },
  )}</tbody></table></div>`;
}

function dayCell(
  [dayAtUs, hours]: Day,
  { subscription, nowUs }: { subscription: string; nowUs: number },
): Html {
  const { label, tone, sign } = hourLooks[worstState(statesOf(hours))];
  const day = shortDateUs(dayAtUs).slice(5, 10);
  const missing = hours.reduce((sum, one) => sum + (one?.missing ?? 0), 0);
  const title = `${day}: ${label}${missing > 0 ? `, ${countText(missing)} missing` : ''}`;
  // Without an end, the page of today refreshes.
  const endUs = dayAtUs + dayUs;
  const href = linkTo('/coverage', {
    subscription,
    until: endUs > nowUs ? undefined : isoMinute(endUs),
  });
  return html`<td><a class="cell ${tone}" href="${href}" title="${title}"><span class="visually-hidden">${title}</span><span aria-hidden="true">${sign}</span><small aria-hidden="true">${day.slice(3)}</small></a></td>`;
}
