/** Which notifications a sink wants. */
import type { NotificationLog, NotificationRow } from '../domain/ports.ts';
import type { SinkDefinition } from '../domain/sinks.ts';
import { requireFilter } from '../filter/check.ts';
import { compileFilter, type ProductTest } from '../filter/evaluate.ts';
import { productView } from '../filter/product-view.ts';
import { recordOf } from './record-of.ts';

/** Rejects with `unavailable` when a body cannot be read. */
export type Wants = (row: NotificationRow) => Promise<boolean>;

/**
 * Makes the filters ready, so that they are read once and not for each product. A filter looks at the record
 * that came with the notification, and so at the product as it was then; one without a record passes blank
 * filters only. Throws `invalid` for a filter that is none.
 */
export function compileWants(
  definition: Pick<SinkDefinition, 'subscriptions' | 'events' | 'filter'>,
  log: Pick<NotificationLog, 'body'>,
  /** One more, of a replay, that must match as well. */
  replayFilter = '',
): Wants {
  const subscriptions = new Set<string | null>(definition.subscriptions);
  const events = new Set<string>(definition.events);
  const tests = [definition.filter, replayFilter].flatMap(testsOf);
  return async (row) => {
    if (subscriptions.size > 0 && !subscriptions.has(row.subscription)) return false;
    if (events.size > 0 && !events.has(row.event)) return false;
    if (tests.length === 0) return true;
    const record = recordOf(await log.body(row.position), row);
    if (record === null) return false;
    const view = productView({ Id: row.productId, Name: row.productName, ...record });
    return tests.every((test) => test(view));
  };
}

function testsOf(filter: string): ProductTest[] {
  const tree = requireFilter(filter, 'Products');
  return tree === null ? [] : [compileFilter(tree)];
}
