/** What the store's threads are asked, and how they answer. */
import type { AdministrationChange, DeliveryMark } from '../domain/administration.ts';
import type { BackupRun } from '../domain/backups.ts';
import type { Delivery, NotificationQuery } from '../domain/ports.ts';
import type { AlertChange, AlertQuestion } from './alert-messages.ts';
import type { CompletenessChange, CompletenessQuestion } from './completeness-messages.ts';
import type { Caller } from './engine/rpc.ts';
import type { PruneQuestion, PruneStepOptions } from './pruning/prune-messages.ts';
import type { SinkChange, SinkQuestion } from './sink-messages.ts';
import type { SummaryChange, SummaryQuestion } from './summary-messages.ts';

/** A delivery on its way to the writer thread: its body is a slice of the message's one buffer. */
export interface PackedDelivery extends Omit<Delivery, 'body'> {
  id: number;
  offset: number;
  length: number;
}

export type WriterRequest =
  | { op: 'check'; id: number }
  | { op: 'move-cursor'; id: number; reader: string; position: number; atUs: number }
  | { op: 'retry'; id: number; quarantineId: number; atUs: number }
  | { op: 'drop-quarantined'; id: number; quarantineIds: readonly number[] }
  | { op: 'commit-administration'; id: number; change: AdministrationChange }
  | { op: 'mark-deliveries'; id: number; marks: readonly DeliveryMark[] }
  | { op: 'change-summaries'; id: number; change: SummaryChange }
  | { op: 'change-completeness'; id: number; change: CompletenessChange }
  | { op: 'change-alerts'; id: number; change: AlertChange }
  | { op: 'change-sinks'; id: number; change: SinkChange }
  | { op: 'record-backup'; id: number; run: BackupRun }
  | { op: 'prune-step'; id: number; options: PruneStepOptions }
  | { op: 'forget-reader'; id: number; key: string }
  | { op: 'checkpoint'; id: number };

export type QueryRequest =
  | { op: 'find'; id: number; query: NotificationQuery; rowsMax: number }
  | { op: 'narrow-by-time'; id: number; query: NotificationQuery }
  | { op: 'body'; id: number; position: number }
  | { op: 'original'; id: number; position: number }
  | { op: 'last-position'; id: number }
  | { op: 'drift'; id: number }
  | { op: 'counts'; id: number }
  | { op: 'cursor'; id: number; reader: string }
  | { op: 'quarantined'; id: number; released: boolean; beforeId: number; rowsMax: number }
  | { op: 'held-count'; id: number }
  | { op: 'quarantine-entry'; id: number; quarantineId: number }
  | { op: 'registrations'; id: number }
  | { op: 'history'; id: number; subscription?: string; limit: number }
  | { op: 'gaps'; id: number }
  | { op: 'delivery-marks'; id: number }
  | { op: 'ask-summaries'; id: number; question: SummaryQuestion }
  | { op: 'ask-completeness'; id: number; question: CompletenessQuestion }
  | { op: 'ask-alerts'; id: number; question: AlertQuestion }
  | { op: 'ask-sinks'; id: number; question: SinkQuestion }
  | { op: 'last-backups'; id: number }
  | { op: 'ask-pruning'; id: number; question: PruneQuestion };

/** The calls of a thread as these messages, until they are operations. */
export interface MessageThread<Request> {
  call<Value>(request: (id: number) => Request): Promise<Value>;
}

export function byMessages<Request extends { op: string }>(thread: Caller): MessageThread<Request> {
  return {
    call: async <Value>(request: (id: number) => Request) => {
      const made = request(0);
      return (await thread.call(made.op, [made])) as Value;
    },
  };
}
