/** The ways in which asking the inference service can fail: a closed list, told apart. */

export const inferenceFaultKinds = [
  'wrong_key',
  'key_refused',
  'model_unavailable',
  'request_refused',
  'rate_limited',
  'service_error',
  'timeout',
  'unreachable',
  'redirected',
  'not_json',
  'unexpected_form',
  'empty',
  'cut',
  'cancelled',
] as const;
export type InferenceFaultKind = (typeof inferenceFaultKinds)[number];

/**
 * `settings`: nothing goes until a person changes something. `service`: all requests fail alike, and may
 * go later. `job`: this request alone fails. `caller`: who asked has stopped it.
 */
export type FaultScope = 'settings' | 'service' | 'job' | 'caller';

const scopes: Readonly<Record<InferenceFaultKind, FaultScope>> = {
  wrong_key: 'settings',
  key_refused: 'settings',
  model_unavailable: 'settings',
  redirected: 'settings',
  rate_limited: 'service',
  service_error: 'service',
  timeout: 'service',
  unreachable: 'service',
  not_json: 'service',
  unexpected_form: 'service',
  request_refused: 'job',
  empty: 'job',
  cut: 'job',
  cancelled: 'caller',
};

export function faultScope(kind: InferenceFaultKind): FaultScope {
  return scopes[kind];
}

/** What happened and why, and what to do next: whole sentences, without a secret. */
export interface FaultWords {
  happened: string;
  advice: string;
}

/**
 * A request that brought no text. Its message is safe to show to anybody; it has no cause, since errors of
 * the network and of the client library may quote the key.
 */
export class InferenceFault extends Error {
  readonly kind: InferenceFaultKind;
  /** The two parts of the message. */
  readonly happened: string;
  readonly advice: string;
  /** The wait that the service asks for, of any length; null when it asks for none. */
  readonly retryAfterMs: number | null;
  /** Tokens that were spent all the same; null when the service does not tell. */
  readonly tokens: number | null;

  constructor(
    kind: InferenceFaultKind,
    { happened, advice }: FaultWords,
    told: { retryAfterMs?: number | null; tokens?: number | null } = {},
  ) {
    super(`${happened} ${advice}`);
    this.name = 'InferenceFault';
    this.kind = kind;
    this.happened = happened;
    this.advice = advice;
    this.retryAfterMs = told.retryAfterMs ?? null;
    this.tokens = told.tokens ?? null;
  }
}
