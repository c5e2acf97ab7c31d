/** The inference service as a whole: what it knows, and what whoever runs the sandbox may see and turn. */
import type { InferenceProject } from './inference-projects.ts';
import {
  createInferenceRecord,
  type InferenceRecord,
  type InferenceRequest,
  type InferenceTotals,
} from './inference-record.ts';
import {
  createInferenceKnobs,
  type InferenceKnobs,
  type InferenceSettings,
} from './inference-settings.ts';

/** Its knobs, and what it was asked. */
export interface InferenceView extends InferenceKnobs {
  /** The last thousand requests, in the order of arrival. */
  requests(): readonly InferenceRequest[];
  /** Counts of all of them. */
  totals(): InferenceTotals;
}

/** What its app needs. */
export interface InferenceService {
  readonly projects: readonly InferenceProject[];
  readonly knobs: InferenceKnobs;
  readonly record: InferenceRecord;
  readonly seed: number;
}

/** Creates a service that was asked nothing; it opens nothing. */
export function createInferenceService(
  options: { inferenceProjects: readonly InferenceProject[]; inference: InferenceSettings },
  seed: number,
): InferenceService {
  return {
    projects: options.inferenceProjects,
    knobs: createInferenceKnobs(options.inference),
    record: createInferenceRecord(),
    seed,
  };
}

/** What is shown of it. */
export function viewOfInference({ knobs, record }: InferenceService): InferenceView {
  return {
    current: knobs.current,
    change: knobs.change,
    requests: record.requests,
    totals: record.totals,
  };
}
