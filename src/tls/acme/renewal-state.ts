/** What must be known across restarts to be gentle with an authority: failures, issues, its advice. */
import { z } from 'zod';
import { type AppError, withAdvice } from '../../domain/app-error.ts';

const atUs = z.number().int();

export const renewalStateSchema = z.object({
  directoryUrl: z.string(),
  host: z.string(),
  /** Failures since the last success. */
  failures: z.number().int().nonnegative(),
  lastAttemptAtUs: atUs.nullable(),
  lastSuccessAtUs: atUs.nullable(),
  /** `isProof`: the name was not proved, which can be tried where it does not count. */
  lastFailure: z
    .object({
      atUs,
      message: z.string(),
      /** Absent in files of older versions, which have it in the message. */
      advice: z.string().optional(),
      isProof: z.boolean(),
    })
    .nullable(),
  /** After a failure: not to be tried before. */
  nextTryAtUs: atUs.nullable(),
  /** When certificates were asked for in the last days, their names being proved. */
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
 * As they lie on disk, the one that was written last first. Of each authority and name there is one: two
 * programs with different settings on one data directory must not take their counts from each other.
 */
export const renewalStatesSchema = z.object({ states: z.array(renewalStateSchema) });

export type RenewalStates = z.infer<typeof renewalStatesSchema>;

type Order = Pick<RenewalState, 'directoryUrl' | 'host'>;

const statesMax = 10;

/** The state of this authority and name; one from before the first try where none was saved. */
export function stateFor({ directoryUrl, host }: Order, saved: RenewalStates | null): RenewalState {
  const ours = saved?.states.find(isOf({ directoryUrl, host }));
  if (ours !== undefined) return ours;
  return {
    directoryUrl,
    host,
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
export function withState(state: RenewalState, saved: RenewalStates | null): RenewalStates {
  const others = saved?.states.filter((one) => !isOf(state)(one)) ?? [];
  return { states: [state, ...others].slice(0, statesMax) };
}

function isOf({ directoryUrl, host }: Order): (state: RenewalState) => boolean {
  return (state) => state.directoryUrl === directoryUrl && state.host === host;
}

const dayUs = 24 * 3_600_000_000;

/** The state when a certificate is about to be made: it counts, whatever becomes of it. */
export function afterIssue(state: RenewalState, nowUs: number): RenewalState {
  const recent = state.issuedAtUs.filter((issuedUs) => issuedUs > nowUs - 7 * dayUs);
  return { ...state, issuedAtUs: [...recent, nowUs] };
}

/** The state when a certificate is saved. */
export function afterSuccess(state: RenewalState, nowUs: number): RenewalState {
  return {
    ...state,
    failures: 0,
    lastAttemptAtUs: nowUs,
    lastSuccessAtUs: nowUs,
    nextTryAtUs: null,
    renewalInfo: null,
  };
}

/** The text of the last failure, to be shown; null without one. */
export function lastFailureText({ lastFailure }: RenewalState): string | null {
  return lastFailure && withAdvice(lastFailure.message, lastFailure.advice);
}

/** The state after a failure, whose words are shown to the user. */
export function afterFailure(
  state: RenewalState,
  failure: {
    nowUs: number;
    words: Pick<AppError, 'message' | 'advice'>;
    isProof: boolean;
    nextTryAtUs: number;
  },
): RenewalState {
  const { nowUs, words, isProof, nextTryAtUs } = failure;
  const { message, advice } = words;
  return {
    ...state,
    failures: state.failures + 1,
    lastAttemptAtUs: nowUs,
    lastFailure: { atUs: nowUs, message, advice, isProof },
    nextTryAtUs,
  };
}
