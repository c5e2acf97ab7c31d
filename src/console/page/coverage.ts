/** The page `/coverage`: by hour, which events of the catalogue are in the log, and which are missing. */
import {
  type HourState,
  hourStates,
  notComparedText,
  type ReportedHour,
  readSubscriptionCoverage,
  type SubscriptionCoverage,
  sumCounts,
  sumCoverage,
} from '../../domain/coverage.ts';
import { formatDateUs, shortDateUs } from '../../domain/dates.ts';
import { dayUs, hourUs } from '../../domain/time-units.ts';
import { stateLooks } from './coverage-strip.ts';
import { choice, periodChoice, stateForm } from './layout.ts';
import {
  badge,
  command,
  count,
  emptyState,
  type Html,
  html,
  panel,
  withCommands,
} from './markup.ts';
import {
  type PageParts,
  type PageRequest,
  type PageRoute,
  subscriptionNames,
} from './page-route.ts';
import { isoMinute, listOfSpan, type PageState } from './page-state.ts';

const back = '7d';

/** Ranges with missing events shown with their commands. */
const rangesMax = 50;

/** Meaning of the states of an hour. */
const stateMeanings: Readonly<Record<HourState, string>> = {
  pushed: 'all events were pushed in time',
  quiet: 'the catalogue has no event for this hour',
  late: 'all events are in the log; some pushes came more than half an hour after the event',
  recovered: 'all events are in the log; some were not pushed, but fetched from the catalogue',
  missing: 'some events of the catalogue are not in the log',
  unknown: 'the hour is due, but not compared with the catalogue, so events may be missing',
  pending: 'an hour is compared half an hour after its end',
  pruned: 'the notifications of this hour were deleted by `earshot prune`',
  outside: 'the subscription did not exist',
};

export const coveragePage: PageRoute = {
  path: '/coverage',
  back,
  list: async (parts, request) => {
    const { state, nowUs } = request;
    const { sinceUs, untilUs, subscription } = state;
    const [reports, names] = await Promise.all([
      readSubscriptionCoverage(parts.completeness, { sinceUs, untilUs, subscription, nowUs }),
      subscriptionNames(parts),
    ]);
    return {
      title: 'Coverage',
      refresh: state.until === undefined,
      controls: controls(state, names),
      body: reports.length === 0 ? nothing(state) : content(reports, parts, request),
    };
  },
};

function controls(state: PageState, names: readonly string[]): Html {
  const subscriptions = names.map((name) => [name, name] as const);
  return stateForm(
    '/coverage',
    html`${choice('subscription', 'subscription', [['', 'all'], ...subscriptions], state.subscription)}
${periodChoice(state, back)}`,
  );
}

function nothing({ subscription }: PageState): Html {
  if (subscription === undefined) {
    const reason = 'No subscription was registered in this period, so no event was expected.';
    return panel(
      'Coverage',
      emptyState(reason, html`Register one: ${withCommands('`earshot register`')}`),
    );
  }
  const reason = `The subscription ${subscription} was not registered in this period.`;
  const next = html`<a href="/coverage">Show all subscriptions</a>`;
  return panel('Coverage', emptyState(reason, next));
}

function content(
  reports: readonly SubscriptionCoverage[],
  { comparisonOff }: PageParts,
  { nowUs }: PageRequest,
): Html {
  const when = { comparisonOff: comparisonOff(), nowUs };
  return html`${missingPanel(reports, when)}${notComparedPanel(reports, when)}
<p class="note">A cell opens the notifications received in this hour; events are counted by their date in the catalogue.</p>
${reports.map((report) => hoursPanel(report, { ...when, isOnly: reports.length === 1 }))}${legend(reports)}`;
}

interface When {
  comparisonOff: string | null;
  nowUs: number;
}

/** Hours of a subscription that follow each other. */
interface HourRange {
  subscription: string;
  fromUs: number;
  untilUs: number;
  missing: number;
}

function rangesOf(
  { subscription, hours }: SubscriptionCoverage,
  isPart: (hour: ReportedHour) => boolean,
): HourRange[] {
  const ranges: HourRange[] = [];
  for (const { hourUs: fromUs, missing } of hours.filter(isPart)) {
    const last = ranges.at(-1);
    if (last?.untilUs === fromUs) {
      last.untilUs += hourUs;
      last.missing += missing;
    } else ranges.push({ subscription, fromUs, untilUs: fromUs + hourUs, missing });
  }
  return ranges;
}

/** Names each range with missing events, newest first, with the command that fetches them. */
function missingPanel(reports: readonly SubscriptionCoverage[], when: When): Html {
  const ranges = reports
    .flatMap((report) => rangesOf(report, ({ missing }) => missing > 0))
    .toSorted((a, b) => b.fromUs - a.fromUs);
  const rows = ranges.slice(0, rangesMax).map((range) => {
    const { subscription, fromUs, untilUs, missing } = range;
    return html`<li><p class="range">${badge('bad', `${count(missing)} missing`)} ${rangeText(range, when)} <span class="dim">${subscription}</span> · <a href="${listOfSpan(fromUs, untilUs, { subscription })}">notifications received then</a></p>
${command(reconcileCommand(range))}</li>`;
  });
  const more = ranges.length - rows.length;
  const list = html`<p class="flush">To fetch the missing events of an hour from the catalogue, run its command.
${withCommands('Only their number is known before: to list their names without fetching them, add `--dry-run`.')}</p>
<ul class="plain">${rows}</ul>${more > 0 ? html`<p class="note">And ${count(more)} older ranges.</p>` : ''}`;
  const total = sumCoverage(reports);
  return panel(
    'Missing',
    html`<p class="flush">${total === null ? '' : sentence(total)}</p>${ranges.length === 0 ? '' : list}`,
  );
}

/** `240 events were expected: 236 are in the log, 4 are missing.` */
function sentence({
  expected,
  missing,
  comparedHours,
}: Pick<SubscriptionCoverage, 'expected' | 'missing' | 'comparedHours'>): Html {
  if (comparedHours === 0 && missing === 0) {
    return html`No hour of this period was compared with the catalogue, so it is not known whether events are missing.`;
  }
  const rest =
    missing === 0
      ? html`<strong class="all-there">nothing is missing</strong>`
      : html`<strong class="not-there">${count(missing)} ${missing === 1 ? 'is' : 'are'} missing</strong>`;
  return html`${count(expected)} ${expected === 1 ? 'event was' : 'events were'} expected in ${count(comparedHours)} compared hours: ${count(expected - missing)} ${expected - missing === 1 ? 'is' : 'are'} in the log, ${rest}.`;
}

/** `yesterday, 2026-11-25 14:00 to 15:00 UTC` */
function rangeText({ fromUs, untilUs }: HourRange, { nowUs }: When): string {
  const [from, until] = [shortDateUs(fromUs), shortDateUs(untilUs)];
  const isSameDay = untilUs - (fromUs - (fromUs % dayUs)) <= dayUs;
  const word = dayWord(fromUs, nowUs);
  const end = isSameDay && untilUs % dayUs === 0 ? '24:00' : isSameDay ? until.slice(11) : until;
  return `${word === '' ? '' : `${word}, `}${from} to ${end} UTC`;
}

function dayWord(us: number, nowUs: number): string {
  const days = Math.floor(nowUs / dayUs) - Math.floor(us / dayUs);
  return days === 0 ? 'today' : days === 1 ? 'yesterday' : '';
}

function reconcileCommand({ subscription, fromUs, untilUs }: HourRange): string {
  const [since, until] = [isoMinute(fromUs), isoMinute(untilUs)];
  return `earshot reconcile --since ${since} --until ${until} --subscription ${subscription}`;
}

/** Explains why due hours are not compared, and what to do. */
function notComparedPanel(reports: readonly SubscriptionCoverage[], when: When): Html | string {
  const open = reports.flatMap((report) => {
    const [first, ...rest] = rangesOf(report, ({ state }) => state === 'unknown');
    return first === undefined ? [] : [{ ...first, untilUs: (rest.at(-1) ?? first).untilUs }];
  });
  const hours = reports.reduce((sum, { unknownHours }) => sum + unknownHours, 0);
  const { comparisonOff } = when;
  if (hours === 0 && comparisonOff === null) return '';
  const why =
    comparisonOff === null
      ? 'The receiver compares them automatically, usually within 5 minutes. If they stay, run the command: it prints the reason.'
      : `Hours are not compared automatically: ${comparisonOff.replace(/\.$/, '')}.`;
  const number =
    hours === 0
      ? 'No due hour of this period is open.'
      : `${count(hours)} ${hours === 1 ? 'hour is' : 'hours are'} due, but not compared.`;
  return panel(
    'Not compared',
    html`<p class="flush">${number} ${withCommands(why)}</p>
${open.length === 0 ? '' : html`<p class="flush">To compare now:</p>${open.map((range) => command(reconcileCommand(range)))}`}`,
  );
}

const hoursOfDay = Array.from({ length: 24 }, (_, hour) => hour);

function hoursPanel(report: SubscriptionCoverage, when: When & { isOnly: boolean }): Html {
  const { subscription, hours, complete } = report;
  const byDay = [...Map.groupBy(hours, ({ hourUs: at }) => at - (at % dayUs))];
  // Begins with the first day of the subscription.
  const first = byDay.findIndex(([, own]) => own.some(({ state }) => state !== 'outside'));
  const days = byDay.slice(first).toReversed();
  const caption = `Coverage of ${subscription} by day and hour (UTC)`;
  const remark =
    complete === null
      ? notComparedText(report, when)
      : 'events by the hour of their date in the catalogue, UTC';
  return panel(
    subscription,
    html`${when.isOnly ? '' : html`<p class="flush">${sentence(report)}</p>`}
<div class="scroll by-hour" tabindex="0" role="region" aria-label="${caption}"><table class="hours">
<caption class="visually-hidden">${caption}</caption>
<thead><tr><th scope="col">day</th>${hoursOfDay.map((hour) => html`<th scope="col">${String(hour).padStart(2, '0')}</th>`)}<th scope="col" class="total">in the log</th></tr></thead>
<tbody>${days.map(([dayAtUs, own]) => dayRow(dayAtUs, own, { subscription, when }))}</tbody>
</table></div>`,
    remark,
  );
}

function dayRow(
  dayAtUs: number,
  hours: readonly ReportedHour[],
  { subscription, when }: { subscription: string; when: When },
): Html {
  const byHour = new Map(hours.map((one) => [Math.round((one.hourUs - dayAtUs) / hourUs), one]));
  const { expected, missing } = sumCounts(hours);
  const isKnown = hours.some(
    ({ state }) => !['outside', 'pruned', 'pending', 'unknown'].includes(state),
  );
  const total = html`${count(expected - missing)} of ${count(expected)}${missing > 0 ? html`<br>${badge('bad', `${count(missing)} missing`)}` : ''}`;
  return html`<tr><th scope="row">${weekday(dayAtUs)} ${formatDateUs(dayAtUs).slice(5, 10)}<small>${dayWord(dayAtUs, when.nowUs)}</small></th>
${hoursOfDay.map((hour) => hourCell(byHour.get(hour), subscription))}
<td class="total">${isKnown || missing > 0 ? total : html`<span class="dim">-</span>`}</td></tr>`;
}

const weekday = (us: number) =>
  new Date(us / 1_000).toLocaleDateString('en-GB', { weekday: 'short', timeZone: 'UTC' });

function hourCell(hour: ReportedHour | undefined, subscription: string): Html {
  if (hour === undefined) return html`<td></td>`;
  const { state, hourUs: at } = hour;
  const { text, tone, sign } = stateLooks[state];
  const title = `${shortDateUs(at)} UTC: ${text}${countsText(hour)}${linkText(hour)}`;
  if (state === 'outside')
    return html`<td><span class="cell outside" title="${title}"></span></td>`;
  const href = listOfSpan(at, at + hourUs, { subscription });
  const shown = shownCount(hour);
  return html`<td><a class="cell ${tone}" href="${href}" title="${title}"><span class="visually-hidden">${text}</span><span aria-hidden="true">${sign}</span><small>${shown ?? ''}</small></a></td>`;
}

/** The list is by receipt, and has no missing events. */
function linkText({ state, missing }: ReportedHour): string {
  if (state === 'outside') return '';
  const next = missing > 0 ? ' The names of missing events are known after the command above.' : '';
  return `. Opens the notifications received in this hour; events are counted by their date in the catalogue.${next}`;
}

function countsText({ state, expected, pushed, recovered, late, missing }: ReportedHour): string {
  if (['outside', 'pruned', 'pending', 'unknown'].includes(state)) return '';
  return `. Expected ${count(expected)}, received ${count(pushed + late)}, recovered ${count(recovered)}, late ${count(late)}, missing ${count(missing)}`;
}

/** The count that explains the state. */
function shownCount({ state, expected, recovered, late, missing }: ReportedHour): string | null {
  const counts: Partial<Record<HourState, number>> = {
    ...{ pushed: expected, missing, recovered, late },
  };
  const shown = counts[state];
  return shown === undefined
    ? null
    : shown < 1_000
      ? String(shown)
      : `${Math.floor(shown / 1_000)}k`;
}

/** Explains the states that occur. */
function legend(reports: readonly SubscriptionCoverage[]): Html {
  const occurring = new Set(reports.flatMap(({ hours }) => hours.map(({ state }) => state)));
  const shown = hourStates.filter((state) => occurring.has(state)).toReversed();
  return panel(
    'States of an hour',
    html`<dl class="states">${shown.map((state) => {
      const { text, tone, sign } = stateLooks[state];
      return html`<dt><span class="cell ${state === 'outside' ? 'outside' : tone}" aria-hidden="true">${sign}</span>${text}</dt><dd>${withCommands(stateMeanings[state])}</dd>`;
    })}</dl>
<p class="note">The number in a cell counts the missing, recovered or late events; in a complete hour, all events.</p>`,
  );
}
