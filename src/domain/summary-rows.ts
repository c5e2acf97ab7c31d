/** Summaries as programs get them, from the command line and the private listener alike. */
import { formatDateUs } from './notification-date.ts';
import type { SummaryRow, SummaryText } from './summaries.ts';

/** The fields of a row in every machine-readable form, in this order. */
export const summaryFields = [
  'kind',
  'productId',
  'productName',
  'text',
  'model',
  'verified',
  'createdAt',
  'error',
  'id',
  'state',
  'subscription',
  'doubts',
  'attempts',
  'requestedAt',
  'nextTryAt',
  'receivedFrom',
  'receivedUntil',
  'collection',
  'area',
  'filter',
] as const;

/** Times ISO 8601 UTC; what is not there is null. `model` null: the text is made of the facts alone. */
export function toSummaryJson(row: SummaryRow) {
  const time = (us: number | null | undefined) => (us == null ? null : formatDateUs(us));
  const { text, scope } = row;
  return {
    kind: row.kind,
    productId: row.productId,
    productName: row.productName,
    text: text?.text ?? null,
    model: text?.model ?? null,
    verified: text?.verified ?? null,
    createdAt: time(text?.createdAtUs),
    error: row.error,
    id: row.id,
    state: row.state,
    subscription: row.subscription,
    doubts: [...(text?.doubts ?? [])],
    attempts: row.attempts,
    requestedAt: formatDateUs(row.requestedAtUs),
    nextTryAt: time(row.nextTryAtUs),
    receivedFrom: time(scope?.fromUs),
    receivedUntil: time(scope?.untilUs),
    collection: scope?.collection ?? null,
    area: scope?.area ?? null,
    filter: scope?.filter ?? null,
  } satisfies Record<(typeof summaryFields)[number], unknown>;
}

/** A text as it stands beside a product. */
export function toTextJson({ text, model, verified, createdAtUs }: SummaryText) {
  return { text, model, verified, createdAt: formatDateUs(createdAtUs) };
}
