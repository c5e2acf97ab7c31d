/** A subscription's filter in questions to the catalogue, or asked of records here when that cannot be. */
import { isAppError } from '../../domain/app-error.ts';
import { isBlankFilter } from '../../filter/check.ts';
import { FilterSyntaxError } from '../../filter/finding.ts';
import { parseFilter } from '../../filter/parse.ts';
import type { ProductRecord } from '../../filter/product-record.ts';
import { compileVerdict, type Verdict } from './filter-verdict.ts';

/**
 * What of an address the filter may take. Servers and proxies take 8,000 characters of a request's first
 * line (RFC 9112, 3), some a little less; the rest of the address has some hundred.
 */
const encodedCharactersMax = 5_500;

export interface ListFilter {
  /** What goes into the question; blank for everything. */
  sent(): string;
  /** True for a record of an answer to that question that is wanted; null where nobody can tell. */
  matches(record: ProductRecord): Verdict;
  /** Asks the first question, and once more without the filter when the catalogue refuses it. */
  settle<Answer>(ask: () => Promise<Answer>): Promise<Answer>;
}

type Test = (record: ProductRecord) => Verdict;

/**
 * A filter that is too long for an address is evaluated here from the start. So is one that is refused, once
 * it is: by the catalogue, as it may of deleted products when it names a field that they lack, or by a
 * firewall before it that does not let long addresses through. One that cannot be read here either is left to the catalogue.
 */
export function createListFilter(filter: string): ListFilter {
  const isLong = encodeURIComponent(filter.toWellFormed()).length > encodedCharactersMax;
  let test: Test | null = isLong ? readTest(filter) : null;
  return {
    sent: () => (test === null ? filter : ''),
    matches: (record) => test === null || test(record),
    settle: async (ask) => {
      try {
        return await ask();
      } catch (error) {
        if (test !== null || isBlankFilter(filter) || !isAppError(error, 'invalid')) throw error;
        test = readTest(filter);
        if (test === null) throw error;
        return ask();
      }
    },
  };
}

function readTest(filter: string): Test | null {
  try {
    return compileVerdict(parseFilter(filter).tree);
  } catch (error) {
    if (error instanceof FilterSyntaxError) return null;
    throw error;
  }
}
