/** What must be known across restarts to be gentle with an authority: failures, issues, its advice. */
import { z } from 'zod';

const atUs = z.number().int();

export const renewalStateSchema = z.object({
  /** Whose state it is: another authority or name begins anew. */
  directoryUrl: z.string(),
  host: z.string(),
  /** Failures since the last success. */
  failures: z.number().int().nonnegative(),
  lastAttemptAtUs: atUs.nullable(),
  lastSuccessAtUs: atUs.nullable(),
  lastFailure: z.object({ atUs, message: z.string() }).nullable(),
  /** After a failure: not to be tried before. */
  nextTryAtUs: atUs.nullable(),
  /** Certificates issued in the last days. */
  issuedAtUs: z.array(atUs),
  /** The authority's advice on one certificate (RFC 9773). */
  renewalInfo: z
    .object({
      certificateId: z.string(),
      /** Null while it could not be had. */
      window: z.object({ startUs: atUs, endUs: atUs }).nullable(),
      askAgainAtUs: atUs,
    })
    .nullable(),
});

export type RenewalState = z.infer<typeof renewalStateSchema>;

/**
 * On disk: the one that was written last, and those of other authorities and names. Two programs with
 * different settings on one data directory would otherwise take their counts from each other.
 */
export const savedStatesSchema = renewalStateSchema.extend({
  others: z.array(renewalStateSchema).default([]),
});

export type SavedStates = z.infer<typeof savedStatesSchema>;

const othersMax = 10;

/** What was saved, where it is about this authority and name; else the state before the first try. */
export function stateFor(
  order: { directoryUrl: string; host: string },
  saved: (RenewalState & Partial<SavedStates>) | null,
): RenewalState {
  const ours = allOf(saved).find((one) => isSameOrder(one, order));
  if (ours !== undefined) return ours;
  return {
    directoryUrl: order.directoryUrl,
    host: order.host,
    failures: 0,
    lastAttemptAtUs: null,
    lastSuccessAtUs: null,
    lastFailure: null,
    nextTryAtUs: null,
    issuedAtUs: [],
    renewalInfo: null,
  };
}

/** What is to be saved: a state in its new form, and the others as they were. */
export function withState(state: RenewalState, saved: SavedStates | null): SavedStates {
  const others = allOf(saved).filter((one) => !isSameOrder(one, state));
  return { ...state, others: others.slice(0, othersMax) };
}

function allOf(saved: (RenewalState & Partial<SavedStates>) | null): RenewalState[] {
  if (saved === null) return [];
  const { others = [], ...last } = saved;
  return [last, ...others];
}

function isSameOrder(
  one: { directoryUrl: string; host: string },
  other: { directoryUrl: string; host: string },
): boolean {
  return one.directoryUrl === other.directoryUrl && one.host === other.host;
}

const dayUs = 24 * 3_600_000_000;

/** The state after a certificate was issued. */
export function afterSuccess(state: RenewalState, nowUs: number): RenewalState {
  const recent = state.issuedAtUs.filter((issuedUs) => issuedUs > nowUs - 7 * dayUs);
  return {
    ...state,
    failures: 0,
    lastAttemptAtUs: nowUs,
    lastSuccessAtUs: nowUs,
    nextTryAtUs: null,
    issuedAtUs: [...recent, nowUs],
    renewalInfo: null,
  };
}

/** The state after a failure; `message` is in our own words, and shown to the user. */
export function afterFailure(
  state: RenewalState,
  failure: { nowUs: number; message: string; nextTryAtUs: number },
): RenewalState {
  const { nowUs, message, nextTryAtUs } = failure;
  return {
    ...state,
    failures: state.failures + 1,
    lastAttemptAtUs: nowUs,
    lastFailure: { atUs: nowUs, message },
    nextTryAtUs,
  };
}
