/** Remembers what the inference service was asked and what came of it; no key, and no text of a message. */
import type { InferenceFault } from './inference-faults.ts';

/**
 * What came of a request: `answered` with the text that it should have; `listed` its models; `refused`,
 * being no request of this interface; `abandoned` by a client that went away; else the fault, whether it was
 * the client's own or played.
 */
export type InferenceOutcome = 'answered' | 'listed' | 'refused' | 'abandoned' | InferenceFault;

export interface InferenceRequest {
  /** ISO 8601, by the clock of the sandbox. */
  readonly at: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** The name of the key's project; null for a key that nobody has. */
  readonly project: string | null;
  /** As it was asked for, cut to 200 characters. */
  readonly model: string | null;
  /** Length of all user messages together. */
  readonly userCharacters: number;
  /** SHA-256 of model and messages, hexadecimal; the same for the same request. Null for what is none. */
  readonly digest: string | null;
  /** Null while it is not known. */
  readonly outcome: InferenceOutcome | null;
  /** Null before the answer, and where there was none. */
  readonly status: number | null;
}

/** An entry whose end is not known yet; what is set here shows in the record. */
export type OpenInferenceRequest = {
  -readonly [Key in keyof InferenceRequest]: InferenceRequest[Key];
};

export interface InferenceTotals {
  readonly requests: number;
  /** Not answered yet, and the most there were of them at one time. */
  readonly inFlight: number;
  readonly inFlightMax: number;
  /** Different requests for completions that were `answered`. */
  readonly distinct: number;
  /** How often one was `answered` that had been before. */
  readonly repeated: number;
  readonly outcomes: Readonly<Partial<Record<InferenceOutcome, number>>>;
}

export interface InferenceRecord {
  open(request: Pick<InferenceRequest, 'at' | 'method' | 'path'>): OpenInferenceRequest;
  /** Tells how often a request was asked before, and counts it. */
  timesAsked(digest: string): number;
  /** Sets how it ended; ends nothing yet, as an answer that never comes is one. */
  settle(request: OpenInferenceRequest, outcome: InferenceOutcome, status: number | null): void;
  /** The request is no longer in flight. */
  close(): void;
  /** Copies of the last thousand, in the order of arrival. */
  requests(): readonly InferenceRequest[];
  totals(): InferenceTotals;
}

const requestsMax = 1_000;
// Whoever asks without end loses the oldest counts, not the sandbox's memory.
const digestsMax = 50_000;

/** Creates an empty record. */
export function createInferenceRecord(): InferenceRecord {
  const requests: OpenInferenceRequest[] = [];
  const asked = new Map<string, number>();
  const answered = new Map<string, number>();
  const outcomes: Partial<Record<InferenceOutcome, number>> = {};
  const counts = { requests: 0, inFlight: 0, inFlightMax: 0, distinct: 0, repeated: 0 };
  return {
    open: (request) => {
      const nothing = { project: null, model: null, userCharacters: 0, digest: null };
      const opened = { ...request, ...nothing, outcome: null, status: null };
      requests.push(opened);
      if (requests.length > requestsMax) requests.shift();
      counts.requests += 1;
      counts.inFlight += 1;
      counts.inFlightMax = Math.max(counts.inFlightMax, counts.inFlight);
      return opened;
    },
    timesAsked: (digest) => countOne(asked, digest),
    settle: (request, outcome, status) => {
      Object.assign(request, { outcome, status });
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      if (outcome !== 'answered' || request.digest === null) return;
      if (countOne(answered, request.digest) === 0) counts.distinct += 1;
      else counts.repeated += 1;
    },
    close: () => {
      counts.inFlight -= 1;
    },
    requests: () => requests.map((request) => ({ ...request })),
    totals: () => ({ ...counts, outcomes: { ...outcomes } }),
  };
}

/** Adds one, and tells how many there were before. */
function countOne(counts: Map<string, number>, digest: string): number {
  const before = counts.get(digest) ?? 0;
  counts.set(digest, before + 1);
  const [oldest] = counts.keys();
  if (counts.size > digestsMax && oldest !== undefined) counts.delete(oldest);
  return before;
}
