/** The account's side of the store, over its two threads. */
import type {
  Administration,
  AdministrationReader,
  DeliveryMark,
  Gap,
  HistoryEntry,
  Registration,
} from '../domain/administration.ts';
import type { MessageThread, QueryRequest, WriterRequest } from './messages.ts';

/** The questions, asked on the query thread. */
export function createAdministrationReader(
  thread: MessageThread<QueryRequest>,
): AdministrationReader {
  return {
    registrations: () => thread.call<Registration[]>((id) => ({ op: 'registrations', id })),
    history: (options) => thread.call<HistoryEntry[]>((id) => ({ ...options, op: 'history', id })),
    gaps: () => thread.call<Gap[]>((id) => ({ op: 'gaps', id })),
    deliveryMarks: () => thread.call<DeliveryMark[]>((id) => ({ op: 'delivery-marks', id })),
  };
}

/** The questions of a reader, and the changes, made on the writer thread. */
export function createAdministration(
  reader: AdministrationReader,
  thread: MessageThread<WriterRequest>,
): Administration {
  return {
    ...reader,
    commit: (change) => thread.call<void>((id) => ({ op: 'commit-administration', id, change })),
    markDeliveries: (marks) => thread.call<void>((id) => ({ op: 'mark-deliveries', id, marks })),
  };
}
