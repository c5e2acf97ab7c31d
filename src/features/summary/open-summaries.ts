/** Opens what summaries need, and formats rows. */

import type { Io, Output } from '../../core/cli/io.ts';
import { painter, wrapText } from '../../core/cli/output.ts';
import type { Config } from '../../core/config/config.ts';
import { shortDateUs } from '../../core/terms/dates.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { printable } from '../../core/terms/text.ts';
import type { Products } from '../../filter/products.ts';
import type { Store } from '../../store/store.ts';
import { lazyPlaces } from '../products/places/places.ts';
import { createChatClient } from './chat-client.ts';
import type { SummaryContext } from './jobs.ts';
import { type SummaryRow, subjectName } from './terms.ts';

export function openSummaryContext(
  { inference, budget }: Pick<Config['summary'], 'inference' | 'budget'>,
  { store, products, log }: { store: Store; products: Products; log: Logger },
  { fetch, nowUs, random }: Pick<Io, 'fetch' | 'nowUs' | 'random'>,
): SummaryContext {
  const model = inference && {
    name: inference.model,
    client: createChatClient({ baseUrl: inference.url, apiKey: inference.apiKey, fetch }),
  };
  const { summaries, acquireLock } = store;
  const places = lazyPlaces();
  return {
    notifications: store,
    products,
    summaries,
    places,
    model,
    budget,
    acquireLock,
    nowUs,
    random,
    log,
  };
}

/** Formats a summary as a paragraph for the width of the output. */
export function summaryText(row: SummaryRow, { env }: Pick<Io, 'env'>, output: Output): string {
  const paint = painter({ env }, output);
  const { id, text, reason } = row;
  // Wrapped before it is painted: escape codes have no width.
  const below = (line: string) => wrapText(printable(line), '  ', output);
  const lines = [
    `${paint('bold', subjectName(row))}  ${paint('dim', `#${id} ${stateText(row)}`)}`,
    ...(text === null ? [] : below(text.text)),
    ...(reason === null ? [] : below(reason)).map((line) => paint('yellow', line)),
  ];
  return `${lines.join('\n')}\n\n`;
}

function stateText({ state, text, dueAtUs }: SummaryRow): string {
  if (state === 'waiting') return `waiting, due ${shortDateUs(dueAtUs ?? 0)} UTC`;
  if (text === null) return 'no text';
  return text.model === null ? 'from the template' : `by ${printable(text.model)}`;
}
