/** The product index as a reader of the log. Its tables are in a file of their own. */
import { dirname } from 'node:path';
import { isAppError } from '../../core/terms/app-error.ts';
import { minuteUs } from '../../core/terms/dates.ts';
import type { Database } from '../../store/engine/database.ts';
import type { PruneBlocker } from '../../store/pruning/terms.ts';
import { indexedPosition, openProductsForReading } from './index-file/product-file.ts';

export const schema = '';

export const reads = {};

export const writes = {};

/** Tolerated lag. */
const lagMaxUs = 15 * minuteUs;

/** Returns nothing if there is no index of this version: a new one is built from the current log. */
export function localBlockers(log: Database): PruneBlocker[] {
  try {
    const index = openProductsForReading(dirname(log.name));
    try {
      const position = indexedPosition({ index, log });
      const advice = 'To update the index: `earshot start` or `earshot query products`.';
      const place = { key: 'index', position, sinceUs: null, of: 'products', lagMaxUs };
      return [{ name: 'product index', kind: 'index', ...place, advice }];
    } finally {
      index.close();
    }
  } catch (error) {
    if (isAppError(error, 'unavailable')) return [];
    throw error;
  }
}
