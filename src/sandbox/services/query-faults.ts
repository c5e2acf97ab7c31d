/** Plays the faults of the product lists: chooses one for a request, and spoils the answer. */
import type { Random } from '../random.ts';
import { type CatalogueAnswer, formedError } from './catalogue-errors.ts';
import { type QueryFault, queryFaults } from './query-fault-names.ts';
import type { ServiceKnobs, ServiceSettings } from './service-settings.ts';

/** An answer that is written as it stands; `cutAfter` ends the connection after so many bytes of it. */
export interface PlayedAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
  readonly cutAfter: number | null;
}

/** Chooses the fault of a list: first what is set for the next ones, which counts down, else by the shares. */
export function chooseQueryFault(knobs: ServiceKnobs, random: Random): QueryFault | null {
  const { nextQueries, queryFaults: shares } = knobs.current();
  const ordered = queryFaults.find((fault) => nextQueries[fault] > 0);
  if (ordered !== undefined) {
    knobs.change({ nextQueries: { [ordered]: nextQueries[ordered] - 1 } });
    return ordered;
  }
  // Each is drawn, whether the ones before it are played or not: no share shifts another.
  const drawn = queryFaults.filter((fault) => random.chance(shares[fault]));
  return drawn[0] ?? null;
}

/** What is answered instead of the right answer; that one is written when it is no list. */
export function playQueryFault(
  fault: QueryFault,
  answer: CatalogueAnswer,
  settings: ServiceSettings,
  requestId: string,
): CatalogueAnswer | PlayedAnswer {
  const { queryRetryAfterSeconds: seconds } = settings;
  switch (fault) {
    case 'rateLimited': {
      const refusal = formedError(429, 'Too many requests.', settings, requestId);
      return seconds === null
        ? refusal
        : { ...refusal, headers: { 'Retry-After': String(seconds) } };
    }
    case 'serverError':
      return formedError(500, 'Internal server error.', settings, requestId);
    case 'htmlPage':
      return page('<!doctype html><title>Please wait</title><p>Please wait.</p>', 'text/html');
    default:
      return answer.status === 200 ? spoil(fault, answer.body ?? {}) : answer;
  }
}

function spoil(
  fault: 'connectionCut' | 'brokenJson' | 'valueMissing' | 'outOfOrder',
  body: object,
): PlayedAnswer {
  const text = JSON.stringify(body);
  const half = Math.floor(text.length / 2);
  switch (fault) {
    case 'connectionCut':
      return { ...page(text), cutAfter: half };
    case 'brokenJson':
      return page(text.slice(0, half));
    case 'valueMissing':
      return page(JSON.stringify({ ...body, value: undefined }));
    case 'outOfOrder': {
      const records = 'value' in body && Array.isArray(body.value) ? body.value : [];
      return page(JSON.stringify({ ...body, value: records.toReversed() }));
    }
  }
}

function page(text: string, contentType = 'application/json'): PlayedAnswer {
  return { status: 200, contentType, text, cutAfter: null };
}
