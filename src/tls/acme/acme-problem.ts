/** What an authority refused, in the machine's terms: the code that orders decides by these. */

/** A refusal as RFC 8555 section 6.7 has it, or `unreachable` when there was no answer at all. */
export class AcmeProblem extends Error {
  /** Without `urn:ietf:params:acme:error:`, such as `rateLimited`; else `http` or `unreachable`. */
  readonly type: string;
  /** The authority's own words: foreign text. For `unreachable`, ours. */
  readonly detail: string;
  /** How long it asks us to wait; null when it does not say. */
  readonly retryAfterMs: number | null;

  constructor(type: string, detail: string, retryAfterMs: number | null = null) {
    super(`${type}: ${detail}`);
    this.name = 'AcmeProblem';
    this.type = type;
    this.detail = detail;
    this.retryAfterMs = retryAfterMs;
  }
}

export function isAcmeProblem(error: unknown, type?: string): error is AcmeProblem {
  return error instanceof AcmeProblem && (type === undefined || error.type === type);
}

const passing: ReadonlySet<string> = new Set([
  'unreachable',
  'rateLimited',
  'serverInternal',
  'malformedAnswer',
]);

/** True for what says nothing of the request: the same one may be granted later. */
export function isPassing(error: unknown): boolean {
  return error instanceof AcmeProblem && passing.has(error.type);
}

/** What an authority may find when it looks whether a name is ours (RFC 8555, 6.7 and 8). */
const proofTypes: ReadonlySet<string> = new Set([
  'dns',
  'connection',
  'unauthorized',
  'incorrectResponse',
  'tls',
  'caa',
  'compound',
]);

/** True where the proof has failed: what has to be put right is here, not at the authority. */
export function isProofProblem(error: unknown): error is AcmeProblem {
  return error instanceof AcmeProblem && proofTypes.has(error.type);
}

/** The type's last part; `other` for one that is no ACME error. */
export function problemType(urn: string | undefined): string {
  return /^urn:ietf:params:acme:error:(\w{1,50})$/.exec(urn ?? '')?.[1] ?? 'other';
}
