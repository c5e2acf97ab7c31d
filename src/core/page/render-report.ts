/** Renders reports as HTML. */

import type { Status } from '../status/status.ts';
import { type Evaluation, isProblem, type Level } from '../terms/evaluation.ts';
import type { Block, Report, Value } from '../terms/report.ts';
import { countText, lengthText, sizeText } from '../terms/text.ts';
import {
  badge,
  command,
  copyButton,
  emptyState,
  facts,
  type Html,
  html,
  panel,
  type TableColumn,
  type Tone,
  table,
  time,
  withCommands,
} from './markup.ts';
import { linkTo } from './page-state.ts';

const tones: Readonly<Record<Level, Tone>> = {
  ...{ ok: 'good', unknown: 'note', warning: 'warn', critical: 'bad' },
};

/** Classes of columns that a narrow list leaves out, by `drop`. */
const ranks = ['', 'rank-4', 'rank-3', 'rank-2', 'rank-1'];

function levelBadge({ level }: Pick<Evaluation, 'level'>): Html {
  return badge(tones[level], level);
}

/** Renders a report as a panel; its sections are panels of their own, below it. */
export function renderReport({ title, blocks }: Report, nowUs: number): Html {
  // Sections and pictures are panels of their own.
  const isOwn = ({ kind }: Block) => kind !== 'section' && kind !== 'drawn';
  const own = blocks.filter(isOwn);
  return html`${own.length === 0 ? '' : panel(title, renderBlocks(own, nowUs))}
${blocks.filter((block) => !isOwn(block)).map((block) => renderBlock(block, nowUs))}`;
}

export function renderBlocks(blocks: readonly Block[], nowUs: number): Html {
  return html`${blocks.map((block) => renderBlock(block, nowUs))}`;
}

function renderBlock(block: Block, nowUs: number): Html | string {
  switch (block.kind) {
    case 'text':
      return html`<p>${withCommands(block.text)}</p>`;
    case 'empty':
      return emptyState(
        withCommands(block.text),
        block.next === null ? '' : withCopies(block.next),
      );
    case 'facts':
      return facts(
        block.rows.flatMap(([name, value]) =>
          value === null ? [] : [[name, renderFact(value, nowUs)] as const],
        ),
      );
    case 'commands':
      return commandList(block.rows);
    case 'evaluations':
      return evaluationList(block);
    case 'table': {
      const columns = block.columns.map((column, i): TableColumn<readonly Value[]> => {
        const { title, isNumber = false, grows, isName, isWhole, drop = 0 } = column;
        const width = isName ? 'product-name' : grows || isWhole ? 'wrap' : 'tight';
        // A page wraps what a terminal leaves out.
        const rank = isWhole ? '' : ranks[Math.min(drop, ranks.length - 1)];
        const value = (row: readonly Value[]) =>
          isWhole ? renderFact(row[i] ?? null, nowUs) : renderValue(row[i] ?? null, nowUs, isName);
        return { title, isNumber, class: `${width} ${rank}`, value };
      });
      return table(columns, block.rows, { caption: block.caption, list: true });
    }
    case 'drawn':
      return block.panels();
    case 'section': {
      const { title, id, evaluation } = block;
      const level = evaluation === null || evaluation.level === 'ok' ? '' : evaluation.level;
      return html`<section class="panel item ${level}" ${id === undefined ? '' : html`id="${id}"`}><header><h2>${title}
${evaluation === null ? '' : levelBadge(evaluation)}</h2></header>${evaluation === null ? '' : renderEvaluation(evaluation)}${renderBlocks(block.blocks, nowUs)}</section>`;
    }
  }
}

/** Renders a value; identifiers and addresses can be copied. */
function renderFact(value: Value, nowUs: number) {
  const shown = renderValue(value, nowUs);
  if (value === null || typeof value !== 'object' || !('code' in value)) return shown;
  return html`${shown} ${copyButton(value.code, 'Copy')}`;
}

/** Renders a value as the terminal formats it; times also have their age. */
function renderValue(value: Value, nowUs: number, isName = false): Html | string | null {
  if (value === null) return null;
  if (typeof value === 'string') return withCommands(value);
  if (typeof value === 'number') return countText(value);
  if ('timeUs' in value) return time(value.timeUs, nowUs, 'minute');
  if ('spanUs' in value) return lengthText(value.spanUs);
  if ('bytes' in value) return sizeText(value.bytes);
  if ('code' in value) return html`<code>${value.code}</code>`;
  if ('level' in value) return badge(tones[value.level], value.text ?? value.level);
  return html`<a class="${isName ? 'name' : ''}" href="${value.href}">${value.text}</a>`;
}

/** Renders the text of an evaluation with its evidence, and the next step with its commands. */
export function renderEvaluation({ text, evidence, nextStep }: Evaluation): Html {
  const lines =
    evidence.length === 0
      ? ''
      : html`<ul class="evidence">${evidence.map((line) => html`<li>${withCommands(line)}</li>`)}</ul>`;
  const next = nextStep === null ? '' : html`<p>Next: ${withCopies(nextStep)}</p>`;
  return html`<p class="cause">${withCommands(text)}</p>${lines}${next}`;
}

function evaluationList({ rows, all }: Block & { kind: 'evaluations' }): Html | string {
  const shown = rows.filter(([, one]) => all || isProblem(one));
  if (shown.length === 0) return '';
  return html`<dl class="evaluations">${shown.map(([name, one]) => html`<dt>${levelBadge(one)} ${name}</dt><dd>${renderEvaluation(one)}</dd>`)}</dl>`;
}

/** Renders commands, each with its purpose. */
export function commandList(rows: readonly (readonly [purpose: string, command: string])[]): Html {
  return html`<dl class="commands">${rows.map(([purpose, text]) => html`<div><dt>${purpose}</dt><dd>${command(text)}</dd></div>`)}</dl>`;
}

/** Renders a text with its commands, each with a button that copies it. */
function withCopies(text: string): Html {
  return html`${text.split('`').map((part, i) => {
    if (i % 2 === 0) return part;
    return html`<code>${part}</code>${part.startsWith('earshot ') ? copyButton(part, 'Copy') : ''}`;
  })}`;
}

/** Renders the evaluation of a part of the receiver, as `earshot status` shows it. */
export function partState({ parts }: Pick<Status, 'parts'>, name: string): Html | string {
  const part = parts.find((one) => one.part === name);
  if (part === undefined) return '';
  return html`<section class="panel part ${part.level}" aria-label="State">${levelBadge(part)}<div>${renderEvaluation(part)}</div></section>`;
}

/** Renders the link to the next page of a list, if more rows were read than this one shows. */
export function olderLink(
  url: URL,
  read: readonly { id: number }[],
  shownMax: number,
): Html | string {
  const last = read.length > shownMax ? read[shownMax - 1] : undefined;
  if (last === undefined) return '';
  const state = { ...Object.fromEntries(url.searchParams), before: last.id };
  return html`<p><a href="${linkTo(url.pathname, state)}" rel="next">Older</a></p>`;
}

/** Reads the id of the last row of the previous page. Ignores other texts. */
export function beforeId(url: URL): number | undefined {
  const text = url.searchParams.get('before') ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
