/** Where items are handed over to, and what may come of it. */
import type { HandOver } from './hand-over-document.ts';

export type TargetAnswer =
  | { kind: 'taken' }
  /** It answers, and does not want this one: asked again a few times, then a dead letter. */
  | { kind: 'refused'; reason: string }
  /** Not this one's fault. The wait is what it asked for; null when it did not. */
  | { kind: 'unavailable'; reason: string; retryAfterMs: number | null }
  /** Nothing can be handed over before somebody puts something right. */
  | { kind: 'misconfigured'; reason: string };

export interface Target {
  /**
   * Delivers one item. Resolves soon after the signal is aborted, then with any answer. Rejects only when the item
   * itself cannot be sent, such as a record that cannot be written as JSON. Reasons complete "… does not take it: "
   * and contain no secret.
   */
  handOver(item: HandOver, signal: AbortSignal): Promise<TargetAnswer>;
  close(): Promise<void>;
}
