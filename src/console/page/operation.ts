/** Markup shared by the pages about the operation of the receiver. */
import type { AlertSeverity } from '../../domain/alerts.ts';
import type { PartStatus, Status, StatusPart } from '../../domain/status.ts';
import { badge, command, type Html, html, type Tone, withCommands } from './markup.ts';
import { linkTo } from './page-state.ts';

const levelTones: Readonly<Record<PartStatus['level'], readonly [Tone, string]>> = {
  well: ['good', 'well'],
  unused: ['plain', 'not in use'],
  warning: ['warn', 'warning'],
  critical: ['bad', 'critical'],
};

/** Renders the state of a part of the receiver, as `earshot status` reports it, with the next step. */
export function partState(
  { parts }: Pick<Status, 'parts'>,
  name: StatusPart,
  /** List of the problems of the part; its text then counts no others. */
  all: Html | string = '',
): Html | string {
  const part = parts.find((one) => one.part === name);
  if (part === undefined) return '';
  const text = all === '' ? part.text : part.text.replace(/ \(and \d+ more\)$/, '');
  const [tone, level] = levelTones[part.level];
  const next = part.nextStep === null ? '' : html`<p>Next: ${withCommands(part.nextStep)}</p>`;
  return html`<section class="panel part ${part.level}" aria-label="State">${badge(tone, level)}
<div><p>${withCommands(sentence(text))}</p>${all}${next}</div></section>`;
}

/** Parts without a problem have a fragment as text. */
function sentence(text: string): string {
  const begun = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
  return /[.!?`)]$/.test(begun) ? begun : `${begun}.`;
}

/** Renders a panel about one item, with its state next to its name. `id` is the target of links. */
export function itemPanel(
  {
    id,
    title,
    state,
    links = '',
    level = '',
  }: { id: string; title: string; state: Html; links?: Html | string; level?: AlertSeverity | '' },
  body: Html,
): Html {
  return html`<section class="panel item ${level}" id="${id}" data-row><header><h2>${title} ${state}</h2>
${links === '' ? '' : html`<p>${links}</p>`}</header>${body}</section>`;
}

/** Renders commands, each with its purpose. */
export function commandList(rows: readonly (readonly [purpose: string, command: string])[]): Html {
  return html`<dl class="commands">${rows.map(([purpose, text]) => html`<div><dt>${purpose}</dt><dd>${command(text)}</dd></div>`)}</dl>`;
}

/** Renders the commands that a text names in backquotes, so that they can be copied. */
export function commandsIn(text: string): Html {
  const named = [...text.matchAll(/`(earshot [^`]+)`/g)].map(([, found = '']) => found);
  return html`${named.map((one) => command(one))}`;
}

/** Renders the link to the next page of a list; `last` is the id of the last row, null on the last page. */
export function olderLink(url: URL, last: number | null): Html | string {
  if (last === null) return '';
  const state = { ...Object.fromEntries(url.searchParams), before: last };
  return html`<p><a href="${linkTo(url.pathname, state)}" rel="next">Older</a></p>`;
}

/** Reads the id of the last row of the previous page. Ignores other texts. */
export function beforeId(url: URL): number | undefined {
  const text = url.searchParams.get('before') ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
