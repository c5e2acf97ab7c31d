/** The frame of every page: navigation, state of the receiver, style sheet and scripts. */
import { raw } from 'hono/html';
import { isOk, type Status, type StatusPart } from '../../features/status/status.ts';
import { excerptOf, type FilterFinding } from '../../filter/finding.ts';
import { shortDateUs } from '../terms/dates.ts';
import type { Assets } from './assets.ts';
import { badge, commandsNote, type Html, html, panel, withCommands } from './markup.ts';
import { isAbsolute, linkTo, navigationState, type PageState } from './page-state.ts';

/** Pages in the order of the navigation, with the key that opens each after `g`. */
export const navigation = [
  { path: '/', label: 'Overview', key: 'o' },
  { path: '/live', label: 'Live', key: 'l' },
  { path: '/map', label: 'Map', key: 'm' },
  { path: '/products', label: 'Products', key: 'p' },
  { path: '/timeliness', label: 'Timeliness', key: 't' },
  { path: '/coverage', label: 'Coverage', key: 'c' },
  { path: '/subscriptions', label: 'Subscriptions', key: 's' },
  { path: '/sinks', label: 'Sinks', key: 'k' },
  { path: '/alerts', label: 'Alerts', key: 'a' },
  { path: '/quarantine', label: 'Quarantine', key: 'q' },
  { path: '/summaries', label: 'Summaries', key: 'u' },
] as const;

/** Parts of the state that limit the content of each page; `/products` has its own search. */
const scopes: Readonly<Record<PagePath, { period: boolean; subscription: boolean }>> = {
  '/': { period: true, subscription: true },
  '/live': { period: true, subscription: true },
  '/map': { period: true, subscription: true },
  '/products': { period: false, subscription: false },
  '/timeliness': { period: true, subscription: true },
  '/coverage': { period: true, subscription: true },
  '/subscriptions': { period: false, subscription: true },
  '/sinks': { period: false, subscription: false },
  '/alerts': { period: true, subscription: false },
  '/quarantine': { period: false, subscription: false },
  '/summaries': { period: true, subscription: true },
};

/** First page of the second group: operation of the receiver. */
const secondGroup = '/subscriptions';

export type PagePath = (typeof navigation)[number]['path'];

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
  /** Replaces the content when something arrives, and at least every 30 s. */
  refresh?: boolean;
  /** The page shows a failure in place of its content. */
  failed?: boolean;
  /** Uses the whole width of the window. */
  wide?: boolean;
}

interface Frame {
  /** Null for an unknown page. */
  path: PagePath | null;
  url?: URL;
  /** Null on a page about an error: links then have no state. */
  state: PageState | null;
  /** Null when not known. */
  status: Pick<Status, 'parts' | 'alerts'> | null;
  assets: Assets;
  /** Position of the live feed from which the content is refreshed. */
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
<script src="${assets.urlOf('theme.js')}"></script>
${scripts.map((name) => html`<script type="module" src="${assets.urlOf(name)}"></script>`)}
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
${sidebar(frame)}
<main id="content" class="${content.wide ? 'wide' : ''}" ${content.refresh ? html`data-refresh="${frame.livePosition ?? ''}"` : ''} ${content.failed ? html`data-failed` : ''}>
<p class="banner" role="status" hidden></p>
<div class="heading"><h1 class="${content.title.length > longTitle ? 'long' : ''}">${withBreaks(content.title)}</h1>${content.controls ?? ''}</div>
${scopeNote(frame)}${body}
${commandsNote(body)}</main>
${helpDialog()}${content.data === undefined ? '' : dataBlock(content.data)}
</body>
</html>`;
}

const shortcuts = [
  ['?', 'show this list'],
  ['/', 'focus the search'],
  ['Ctrl+Enter', 'run the filter'],
  ['j k', 'next and previous row of a list'],
  ['o', 'open the row'],
  ...navigation.map(({ key, label }) => [`g ${key}`, `open ${label}`] as const),
  ['← ↑ ↓ → + − 0', 'move or zoom the map, show all of it'],
  ['Enter Backspace', 'select on the map or finish a polygon, remove its last corner'],
  ['Escape', 'stop drawing on the map, or leave the filter'],
] as const;

/** Lists the keys of browser/keyboard.ts, which opens the dialog. */
function helpDialog(): Html {
  const keys = shortcuts.map(([names, text]) => {
    const parts = names.split(' ').map((name) => html`<kbd>${name}</kbd> `);
    return html`<dt>${parts}</dt><dd>${text}</dd>`;
  });
  return html`<dialog><h2>Keyboard shortcuts</h2><dl class="facts">${keys}</dl>
<form method="dialog"><label><input type="checkbox"> Shortcuts are on</label><button autofocus>Close</button></form></dialog>`;
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
function scopeNote({ path, state, url }: Frame): Html | string {
  if (path === null || state === null || url === undefined || url.pathname !== path) return '';
  const { sinceUs, untilUs, subscription } = state;
  const hasPeriod = scopes[path].period && isAbsolute(state);
  const hasSubscription = scopes[path].subscription && subscription !== undefined;
  if (!hasPeriod && !hasSubscription) return '';
  const period = `${shortDateUs(sinceUs)} to ${shortDateUs(untilUs)} UTC`;
  const { before: _, subscription: __, ...rest } = Object.fromEntries(url.searchParams);
  const { since, ...others } = rest;
  const kept = isAbsolute(state) ? { ...others, until: undefined } : { ...others, since };
  return html`<p class="scope">Only ${hasSubscription ? html`the subscription <strong>${subscription ?? ''}</strong>` : ''}${hasSubscription && hasPeriod ? ', ' : ''}${hasPeriod ? html`the period <strong>${period}</strong>` : ''}.
<a href="${linkTo(path, kept)}">Reset</a></p>`;
}

/** Renders the choice of the period for a page whose state cannot be read; nothing on pages without one. */
export function periodOnly(path: PagePath, url: URL, back: string): Html | undefined {
  if (!scopes[path].period || url.pathname !== path) return undefined;
  const { since: _, until: __, ...kept } = Object.fromEntries(url.searchParams);
  return stateForm(path, periodChoice({ since: undefined, until: undefined }, back), kept);
}

/** In a narrow window, a button opens the pages; it has a mark if one of them has. */
function sidebar({ path, state, status, assets }: Frame): Html {
  const shared = state === null ? {} : navigationState(state);
  const markers = navigation.map((one) => marker(one.path, status));
  return html`<header class="sidebar">
<a class="brand" href="/"><svg aria-hidden="true"><use href="${assets.urlOf('icon.svg')}#icon"/></svg>earshot</a>
<details class="folded menu"><summary class="button">Menu${markers.some((one) => one !== '') ? badge('warn', '!') : ''}</summary>
<nav aria-label="Pages"><ul>${navigation.map(
    (
      one,
      i,
    ) => html`<li class="${one.path === secondGroup ? 'group' : ''}"><a href="${linkTo(one.path, shared)}"
      data-key="${one.key}" ${one.path === path ? html`aria-current="page"` : ''}>${one.label}${markers[i]}</a></li>`,
  )}</ul></nav>
<div class="sidebar-end">
<button type="button" class="quiet" data-theme-button>Theme</button>
<button type="button" class="quiet" data-help-button aria-keyshortcuts="?">Shortcuts</button>
</div></details>
</header>`;
}

/** Marks the page with a problem, so that it is visible from all pages. */
function marker(path: PagePath, status: Frame['status']): Html | string {
  if (status === null) return '';
  const { alerts, parts } = status;
  if (path === '/alerts' && alerts.length > 0) {
    const isCritical = alerts.some(({ level }) => level === 'critical');
    return badge(isCritical ? 'bad' : 'warn', String(alerts.length));
  }
  const own = path === '/' ? parts : parts.filter(({ part }) => pageOf(part) === path);
  if (isOk({ parts: own })) return '';
  return badge(own.some(({ level }) => level === 'critical') ? 'bad' : 'warn', '!');
}

/** Returns the page about a part of the receiver; null without one. */
export function pageOf(part: StatusPart): PagePath | null {
  return navigation.find(({ path }) => partsOf[path]?.includes(part))?.path ?? null;
}

/** Parts of the receiver that each page is about. */
const partsOf: Readonly<Partial<Record<PagePath, readonly StatusPart[]>>> = {
  '/coverage': ['coverage'],
  '/subscriptions': ['subscriptions', 'certificate'],
  '/sinks': ['sinks'],
  '/summaries': ['summaries'],
  '/alerts': ['alerts'],
};

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

/** Renders the choice of the period, with `back` as default. An absolute period of the URL is shown as text. */
export function periodChoice(
  { since, until }: Pick<PageState, 'since' | 'until'>,
  back: string,
): Html {
  const options = periods.map(([value, text]) => [value === back ? '' : value, text] as const);
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
