/** What one judge says: what it was able to look at, and what is wrong there. */
import type { AlertFinding, AlertKind } from '../domain/alerts.ts';

/** A kind of alert and what it is about. */
export type Judged = Pick<AlertFinding, 'kind' | 'subject'>;

/** A lasting alert that is judged and no longer found is resolved; one that is not judged is left as it is. */
export interface Verdict {
  judged: readonly Judged[];
  findings: readonly AlertFinding[];
}

/** It could not be judged. */
export const unjudged: Verdict = { judged: [], findings: [] };

/** It was looked at, and nothing is wrong. */
export function nothingWrong(kind: AlertKind, subject: string): Verdict {
  return { judged: [{ kind, subject }], findings: [] };
}

/** It was looked at, and this is wrong. */
export function wrong(finding: AlertFinding): Verdict {
  const { kind, subject } = finding;
  return { judged: [{ kind, subject }], findings: [finding] };
}

export function joined(verdicts: readonly Verdict[]): Verdict {
  return {
    judged: verdicts.flatMap(({ judged }) => judged),
    findings: verdicts.flatMap(({ findings }) => findings),
  };
}
