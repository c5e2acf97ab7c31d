/**
 * The status of a receiver as one document, shown by `earshot status`, `/api/status` and the metrics. Times are
 * microseconds since 1970, UTC. Null: not known, or none.
 */

import { z } from 'zod';
import type { Situation } from '../terms/check.ts';
import { evaluation, evaluationSchema, isProblem, levels } from '../terms/evaluation.ts';
import { toJson } from '../terms/json-rows.ts';
import type { EvaluatedFacts, StatusFacts, StatusPart } from './status-part.ts';

const partStatus = z.object({ part: z.string(), ...evaluationSchema.shape });

export type PartStatus = z.infer<typeof partStatus>;

/** Facts and their evaluation. */
export type Status = Omit<StatusFacts, keyof EvaluatedFacts> &
  EvaluatedFacts & {
    /** Parts, in the order of the features. */
    parts: readonly PartStatus[];
  };

/** Evaluates the facts. Pure: the same facts give the same result. */
export function evaluateStatus(parts: readonly StatusPart[], facts: StatusFacts): Status {
  const { atUs, alerts, receiver } = facts;
  const situation: Situation = { nowUs: atUs, upSinceUs: receiver?.startedAtUs ?? 0, alerts };
  const each = parts.map((part) => part.evaluateEach?.(facts, situation) ?? {});
  // Each part adds the evaluated form of its facts.
  const status = Object.assign({}, facts, ...each) as Omit<Status, 'parts'>;
  const evaluated = parts.flatMap((part): PartStatus[] => {
    const { name } = part;
    const failure = facts.failures.find((one) => one.part === name);
    if (failure === undefined) {
      const own = part.evaluate(status, situation);
      return own === null ? [] : [{ part: name, ...own }];
    }
    const text = `The state is unknown: ${failure.reason}`;
    return [{ part: name, ...evaluation('unknown', text, 'For details, run `earshot doctor`.') }];
  });
  return { ...status, parts: evaluated };
}

/** Returns the schema of the document, written by `toStatusJson`. */
export function statusSchema(parts: readonly StatusPart[]) {
  const fields: Record<string, z.ZodType> = Object.assign({}, ...parts.map((part) => part.fields));
  return z.object({
    atUs: z.number().describe('Time of the status: at most a few seconds ago.'),
    version: z.string(),
    ok: z.boolean().describe('True if each part has the level ok.'),
    parts: z.array(partStatus).describe('Evaluation of each part.'),
    failures: z
      .array(z.object({ part: z.string(), reason: z.string() }))
      .describe('Parts that could not be checked. The fields of these parts are null or empty.'),
    hasEndpoint: z.boolean().describe('False if the receiver only reads queues.'),
    ...fields,
  });
}

/** Converts a status to JSON, with times as ISO 8601 UTC. */
export function toStatusJson(parts: readonly StatusPart[], status: Status) {
  const fields = parts.map((part) => part.toFields?.(status) ?? {});
  return toJson(statusSchema(parts), Object.assign({}, status, ...fields, { ok: isOk(status) }));
}

/** Returns true when no part has a problem. */
export function isOk({ parts }: Pick<Status, 'parts'>): boolean {
  return !parts.some(isProblem);
}

/** Returns the overall state, or the most severe problem and the names of the other parts with problems. */
export function headline(status: Pick<Status, 'parts'>): string {
  if (isOk(status)) return 'Everything is ok.';
  const [worst, ...others] = worstFirst(status);
  const also = others.filter(({ part }) => part !== 'alerts').map(({ part }) => part);
  const rest = also.length === 0 ? '' : ` Also not ok: ${also.join(', ')}.`;
  return `${worst?.text ?? ''}${rest}`;
}

/** Returns the parts with problems, the most severe first. */
export function worstFirst({ parts }: Pick<Status, 'parts'>): PartStatus[] {
  return parts
    .filter(isProblem)
    .toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
}
