/** The frame of every page: navigation, state of the receiver, style sheet and scripts. */
import { raw } from 'hono/html';
import { excerptOf, type FilterFinding } from '../../filter/finding.ts';
import type { ConsoleParts } from '../api/listener-slot.ts';
import { isOk, type Status } from '../status/status.ts';
import { shortDateUs } from '../terms/dates.ts';
import type { Level } from '../terms/evaluation.ts';
import { counted } from '../terms/text.ts';
import type { Assets } from './assets.ts';
import { badge, commandsNote, type Html, html, panel, withCommands } from './markup.ts';
import { isAbsolute, linkTo, navigationState, type PageState } from './page-state.ts';

/** Content of a page, without its frame. */
export interface PageContent {
  title: string;
  body: Html;
  /** Controls next to the heading. */
  controls?: Html;
  /** Scripts of the page, by file name. */
  scripts?: readonly string[];
  /** Data for the scripts, read by `pageData` in the browser. */
  data?: object;
  /** Replaces the content when something arrives, at most every 5 s (`live`: every second), and at least every 30 s. */
  refresh?: boolean | 'live';
  /** The page shows a failure in place of its content. */
  failed?: boolean;
  /** Uses the whole width of the window. */
  wide?: boolean;
}

interface Frame {
  /** Pages of the navigation, in its order. */
  pages: readonly PageRoute[];
  /** Null for an unknown page. */
  page: PageRoute | null;
  url?: URL;
  /** Null on a page about an error: links then have no state. */
  state: PageState | null;
  /** Null when not known. */
  status: Pick<Status, 'parts' | 'alerts'> | null;
  assets: Assets;
  /** Positions of the content: later ones of the live feed refresh it. */
  livePosition?: string;
}

/** Characters of a title in smaller letters: names of products. */
const longTitle = 40;

/** Renders a complete document. */
export async function document(content: PageContent, frame: Frame): Promise<Html> {
  const { assets } = frame;
  const body = await content.body;
  const scripts = ['shell.js', ...(content.scripts ?? [])];
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${content.title} · earshot</title>
<link rel="icon" href="${assets.urlOf('icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${assets.urlOf('page.css')}">
${scripts.map((name) => html`<script type="module" src="${assets.urlOf(name)}"></script>`)}
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
${sidebar(frame)}
<main id="content" class="${content.wide ? 'wide' : ''}" ${content.refresh ? html`data-refresh="${frame.livePosition ?? ''}" ${content.refresh === 'live' ? html`data-live` : ''}` : ''} ${content.failed ? html`data-failed` : ''}>
<p class="banner" role="status" hidden></p>
<div class="heading"><h1 class="${content.title.length > longTitle ? 'long' : ''}">${withBreaks(content.title)}</h1>${content.controls ?? ''}</div>
${scopeNote(frame)}${body}
${commandsNote(body)}</main>
${content.data === undefined ? '' : dataBlock(content.data)}
</body>
</html>`;
}

/** Lets a long name break after its underscores. */
function withBreaks(title: string): Html {
  return html`${title.split('_').map((part, i) => (i === 0 ? part : html`_<wbr>${part}`))}`;
}

/** A block of JSON is not executed, so the content security policy allows it. */
function dataBlock(data: object): Html {
  const json = JSON.stringify(data).replaceAll('<', '\\u003c');
  return html`<script type="application/json" id="page-data">${raw(json)}</script>`;
}

/** States which subscription and which absolute period limit the page, with a link that removes both. */
function scopeNote({ page, state, url }: Frame): Html | string {
  if (page === null || state === null || url === undefined || url.pathname !== page.path) return '';
  const { path, scope } = page;
  const { sinceUs, untilUs, subscription } = state;
  const hasPeriod = scope.includes('period') && isAbsolute(state);
  const hasSubscription = scope.includes('subscription') && subscription !== undefined;
  if (!hasPeriod && !hasSubscription) return '';
  const period = `${shortDateUs(sinceUs)} to ${shortDateUs(untilUs)} UTC`;
  const { before: _, subscription: __, ...rest } = Object.fromEntries(url.searchParams);
  const { since, ...others } = rest;
  const kept = isAbsolute(state) ? { ...others, until: undefined } : { ...others, since };
  return html`<p class="scope">Only ${hasSubscription ? html`the subscription <strong>${subscription ?? ''}</strong>` : ''}${hasSubscription && hasPeriod ? ', ' : ''}${hasPeriod ? html`the period <strong>${period}</strong>` : ''}.
<a href="${linkTo(path, kept)}">Reset</a></p>`;
}

/** In a narrow window, a button opens the pages; it has a mark if one of them has. */
function sidebar({ pages, page, state, status, assets }: Frame): Html {
  const shared = state === null ? {} : navigationState(state);
  const markers = pages.map((one) => marker(one, status));
  const firstOfOperation = pages.find(({ group }) => group === 'operation');
  return html`<header class="sidebar">
<a class="brand" href="/"><svg aria-hidden="true"><use href="${assets.urlOf('icon.svg')}#icon"/></svg>earshot</a>
<details class="folded menu"><summary class="button">Menu${markers.some((one) => one !== '') ? badge('warn', '!') : ''}</summary>
<nav aria-label="Pages"><ul>${pages.map(
    (one, i) =>
      html`<li class="${one === firstOfOperation ? 'group' : ''}"><a href="${linkTo(one.path, shared)}" ${one === page ? html`aria-current="page"` : ''}>${one.label}${markers[i]}</a></li>`,
  )}</ul></nav>
</details>
</header>`;
}

/** Marks the page with a problem, so that it is visible from all pages. */
function marker({ parts = [], count }: PageRoute, status: Frame['status']): Html | string {
  if (status === null) return '';
  const found = count?.(status) ?? null;
  if (found !== null) return badge(toneOf(found.level), String(found.count));
  const own = status.parts.filter(({ part }) => parts === 'all' || parts.includes(part));
  if (isOk({ parts: own })) return '';
  return badge(toneOf(own.some(({ level }) => level === 'critical') ? 'critical' : 'warning'), '!');
}

const toneOf = (level: Level) => (level === 'critical' ? 'bad' : 'warn');

/** Renders a form that changes parts of the state; on a phone, a button opens it. Scripts submit it on change. */
export function stateForm(
  path: string,
  fields: Html,
  kept: Readonly<Record<string, string | undefined>> = {},
): Html {
  const hidden = Object.entries(kept).filter(([, value]) => value !== undefined && value !== '');
  return html`<details class="folded filters"><summary class="button">Filters</summary>
<form class="toolbar" method="get" action="${path}" data-submit-on-change>
${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${fields}<button type="submit">Show</button></form></details>`;
}

/** Renders a choice of the state. The first option is the default and has no parameter. */
export function choice(
  label: string,
  name: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string | undefined,
): Html {
  // A value of the URL that is no usual option is offered, too.
  const others = options.some(([value]) => value === (chosen ?? ''))
    ? []
    : [[chosen ?? '', chosen ?? '']];
  return html`<label>${label}<select name="${name}">${[...options, ...others].map(
    ([value, text]) =>
      html`<option value="${value}" ${value === (chosen ?? '') ? html`selected` : ''}>${text}</option>`,
  )}</select></label>`;
}

const periods: readonly (readonly [string, string])[] = [
  ['1h', 'last hour'],
  ['24h', 'last 24 hours'],
  ['7d', 'last 7 days'],
  ['30d', 'last 30 days'],
];

/**
 * Renders the choice of the period, with `back` as default; null for any time. An absolute period of the URL is shown
 * as text.
 */
export function periodChoice(
  { since, until }: Pick<PageState, 'since' | 'until'>,
  back: string | null,
): Html {
  const anyTime = back === null ? [['', 'any time'] as const] : [];
  const options = [
    ...anyTime,
    ...periods.map(([value, text]) => [value === back ? '' : value, text] as const),
  ];
  const end =
    until === undefined
      ? ''
      : html`<label>until<input name="until" value="${until}" size="20"></label>`;
  const sorted = options.toSorted(([a], [b]) => Number(b === '') - Number(a === ''));
  return html`${choice('period', 'since', sorted, since === back ? undefined : since)}${end}`;
}

/** Renders the field for a filter expression; the key `/` focuses it. */
export function filterField({ filter }: PageState): Html {
  return html`<label class="grow">$filter<input name="filter" value="${filter}" size="40" spellcheck="false"
    autocomplete="off" data-search placeholder="Collection/Name eq 'SENTINEL-2'"></label>`;
}

/** Renders the errors of a filter, each with its place. */
export function filterErrors(filter: string, errors: readonly FilterFinding[]): Html {
  const fields = withCommands('`earshot query products --help` shows examples of filters.');
  return panel(
    errors.length === 1 ? 'One error in the filter' : `${errors.length} errors in the filter`,
    html`${findingsList(filter, errors)}<p>Correct the field $filter above. ${fields}</p>`,
  );
}

const findingsShown = 20;

/** Renders findings of a filter, each with its place in the text. */
export function findingsList(text: string, all: readonly FilterFinding[]): Html {
  const items = all.slice(0, findingsShown).map((one) => {
    const { before, marked, after } = excerptOf(text, one);
    const { severity, message, expected, hint } = one;
    return html`<li>${badge(severity === 'error' ? 'bad' : 'warn', severity)} <span>${withCommands(message)}</span>
<code class="excerpt">${before}<mark>${marked === '' ? ' ' : marked}</mark>${after}</code>
${expected === undefined ? '' : html`<span>Expected: ${withCommands(expected)}</span>`}
${hint === undefined ? '' : html`<span>${withCommands(hint)}</span>`}</li>`;
  });
  return html`<ul class="plain findings">${items}</ul>`;
}

export interface PageRequest {
  url: URL;
  /** Address of the listener for clients, without a slash at the end. */
  base: string;
  state: PageState;
  /** Time at which the page is rendered. */
  nowUs: number;
  /** Last part of the path of a page about one item, decoded; '' for a list. */
  id: string;
  status: Status;
  assets: Assets;
  /** Aborted when the client has closed the connection, and after the timeout of queries. */
  signal: AbortSignal;
}

/** Another address of the page, with the same content: the state in its canonical form. */
export interface Redirect {
  location: string;
}

export interface PageRoute {
  path: `/${string}`;
  /** Name in the navigation. */
  label: string;
  /** Group of the navigation: the data, or the operation of the receiver. */
  group: 'data' | 'operation';
  /** Parts of the state that limit the content. */
  scope: readonly ('period' | 'subscription')[];
  /** Parts of the status that the page is about; a problem marks the page in the navigation. */
  parts?: readonly string[] | 'all';
  /** Returns a number that the navigation shows, and its level; null for none. */
  count?(status: Pick<Status, 'alerts'>): { count: number; level: Level } | null;
  /** Default period, such as `24h`. */
  back: string;
  /** Renders the page. Rejects with `invalid` for a state that cannot be shown, and as the ports do. */
  list(parts: ConsoleParts, request: PageRequest): Promise<PageContent | Redirect>;
  /** Renders the page about one item, below the path. Rejects with `not_found`. */
  item?(parts: ConsoleParts, request: PageRequest): Promise<PageContent>;
}

/** Returns the names of registered subscriptions, and of the paths that have received notifications. */
export async function subscriptionNames({
  administration,
}: Pick<ConsoleParts, 'administration'>): Promise<string[]> {
  const [registered, marks] = await Promise.all([
    administration.registrations(),
    administration.deliveryMarks(),
  ]);
  const names = [...registered.map(({ name }) => name), ...marks.map((one) => one.subscription)];
  return [...new Set(names)].filter((name) => name !== null).toSorted();
}

/**
 * Returns the number of notifications that the product index lacks. Call it before reading the index: if the index
 * catches up meanwhile, the page is newer than it states.
 */
export async function indexLag({ products, notifications }: ConsoleParts): Promise<number> {
  const [indexed, last] = await Promise.all([
    products.indexedPosition(),
    notifications.lastPosition(),
  ]);
  return Math.max(0, last - indexed);
}

export function lagNote(lag: number): Html | string {
  if (lag === 0) return '';
  const missing = counted(lag, 'notification is', 'notifications are');
  return html`<p class="lag">${missing} not indexed yet. If this stays, check the receiver: ${withCommands('`earshot status`')}</p>`;
}
