/** Markup shared by the pages: times, badges, commands, tables, messages. */
import { html as escapedHtml } from 'hono/html';
import { formatDateUs, shortDateUs } from '../terms/dates.ts';
import { printable } from '../terms/text.ts';
import { ageText } from './browser/texts.ts';

/** Markup in which all inserted text is escaped. */
export type Html = ReturnType<typeof escapedHtml>;

/** Renders markup. Inserted text is escaped for HTML, and is printable: names of records may contain any character. */
export function html(markup: TemplateStringsArray, ...values: unknown[]): Html {
  return escapedHtml(markup, ...values.map(visible));
}

function visible(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll(/[^\t\n\r -~]+/g, printable);
  return Array.isArray(value) ? value.map(visible) : value;
}

/** Renders a time: absolute in UTC, with the age, which the browser keeps current. `-` for no time. */
export function time(us: number | null, nowUs: number, upTo: 'minute' | 'second' = 'second'): Html {
  if (us === null) return html`<span class="dim">-</span>`;
  const absolute = shortDateUs(us, upTo);
  return html`<time datetime="${formatDateUs(us)}" class="tight">${absolute}
    <span class="dim" data-age>${ageText((nowUs - us) / 1_000_000)}</span></time>`;
}

/** Renders only the age of a time; the absolute time is the title. */
export function age(us: number | null, nowUs: number): Html {
  if (us === null) return html`<span class="dim">-</span>`;
  const absolute = `${shortDateUs(us, 'second')} UTC`;
  return html`<time datetime="${formatDateUs(us)}" title="${absolute}" class="tight"
    ><span data-age>${ageText((nowUs - us) / 1_000_000)}</span></time>`;
}

/** Meaning of a colour; the text of a badge always names the state, too. */
export type Tone = 'good' | 'note' | 'warn' | 'bad' | 'plain';

export function badge(tone: Tone, text: string): Html {
  return html`<span class="badge ${tone}">${text}</span>`;
}

/** Renders a command with a button that copies it. The page changes nothing itself. */
export function command(text: string): Html {
  return html`<div class="command"><code>${printable(text)}</code>${copyButton(text, 'Copy')}</div>`;
}

/** States where commands run; nothing for content without a command. Each page has it once. */
export function commandsNote(content: { toString(): string }): Html | string {
  if (!content.toString().includes('<div class="command">')) return '';
  return html`<p class="note">Run commands in a terminal on the machine of the receiver.</p>`;
}

/** Renders a button that copies a text, without control characters. */
export function copyButton(text: string, label: string): Html {
  return html`<button type="button" class="quiet" data-copy="${printable(text)}">${label}</button>`;
}

/** Renders the reason for an empty list, and the next step. */
export function emptyState(reason: Html | string, next: Html | string = ''): Html {
  return html`<div class="empty"><p>${reason}</p>${next === '' ? '' : html`<p>${next}</p>`}</div>`;
}

export interface TableColumn<Row> {
  title: string;
  value: (row: Row) => Html | string | number | null;
  /** Right-aligned. */
  isNumber?: boolean;
  class?: string;
}

/** Renders a table. A `list` keeps its rows when the page is refreshed: the first link identifies a row. */
export function table<Row>(
  columns: readonly TableColumn<Row>[],
  rows: readonly Row[],
  { caption, list = false }: { caption: string; list?: boolean },
): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table ${list ? html`data-list` : ''}>
    <caption class="visually-hidden">${caption}</caption>
    <thead><tr>${columns.map((one) => html`<th scope="col" class="${one.isNumber ? 'num' : ''} ${one.class ?? ''}">${one.title}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${columns.map((one) => cell(one, row))}</tr>`)}</tbody>
  </table></div>`;
}

function cell<Row>(
  { value, isNumber = false, class: name = '' }: TableColumn<Row>,
  row: Row,
): Html {
  const content = value(row) ?? html`<span class="dim">-</span>`;
  return html`<td class="${isNumber ? 'num' : ''} ${name}">${content}</td>`;
}

/** Renders a panel with a heading and an optional remark. */
export function panel(title: string, body: Html, remark: Html | string = ''): Html {
  return html`<section class="panel"><header><h2>${title}</h2>${remark === '' ? '' : html`<p>${remark}</p>`}</header>${body}</section>`;
}

/** Renders names and values. Values that are null are left out. */
export function facts(rows: readonly (readonly [string, Html | string | number | null])[]): Html {
  const known = rows.filter(([, value]) => value !== null);
  return html`<dl class="facts">${known.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** Renders findings, each with the place in the text; nothing without findings. */
export function findings(lines: readonly string[]): Html | string {
  if (lines.length === 0) return '';
  return html`<pre class="findings" tabindex="0">${lines.join('\n')}</pre>`;
}

/** Renders a text in which commands and variables stand in backquotes. */
export function withCommands(text: string): Html {
  return html`${text.split('`').map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}
