/** What the store's threads are asked about completeness. */
import type { Completeness, CompletenessReader } from '../domain/coverage.ts';

type Options<Call extends keyof Completeness> = Parameters<Completeness[Call]>[0];

/** A change: one transaction on the writer thread. */
export type CompletenessChange =
  | { kind: 'recover'; options: Options<'recover'> }
  | { kind: 'save-coverage'; options: Options<'saveCoverage'> }
  | { kind: 'mark-up'; options: Options<'markUp'> }
  | { kind: 'begin-run'; options: Options<'beginRun'> }
  | { kind: 'end-run'; options: Options<'endRun'> };

/** A question for the query thread. */
export type CompletenessQuestion =
  | { kind: 'recovered-events'; options: Parameters<CompletenessReader['recoveredEvents']>[0] }
  | { kind: 'definitions' }
  | { kind: 'uptimes'; sinceUs: number }
  | { kind: 'coverage'; options: Parameters<CompletenessReader['coverage']>[0] }
  | { kind: 'arrivals'; options: Parameters<CompletenessReader['arrivals']>[0] }
  | { kind: 'whole-since' };
