/** The alerts' side of the store, over its two threads. */
import type { Alert, AlertDelivery, AlertReader, Alerts } from '../domain/alerts.ts';
import type { AlertChange, AlertQuestion } from './alert-messages.ts';
import type { MessageThread, QueryRequest, WriterRequest } from './messages.ts';

/** The questions, asked on the query thread. */
export function createAlertReader(thread: MessageThread<QueryRequest>): AlertReader {
  const ask = <Answer>(question: AlertQuestion) =>
    thread.call<Answer>((id) => ({ op: 'ask-alerts', id, question }));
  return {
    alerts: (options) => ask<Alert[]>({ kind: 'alerts', options }),
    dueDeliveries: (options) => ask<AlertDelivery[]>({ kind: 'due-deliveries', options }),
    untold: (nowUs) => ask<(AlertDelivery & { isGivenUp: boolean })[]>({ kind: 'untold', nowUs }),
  };
}

/** The questions of a reader, and the changes, made on the writer thread. */
export function createAlerts(reader: AlertReader, thread: MessageThread<WriterRequest>): Alerts {
  const change = <Answer>(asked: AlertChange) =>
    thread.call<Answer>((id) => ({ op: 'change-alerts', id, change: asked }));
  return {
    ...reader,
    settleFindings: (options) =>
      change<{ raised: Alert[]; resolved: Alert[] }>({ kind: 'settle-findings', options }),
    settleDelivery: (options) => change<void>({ kind: 'settle-delivery', options }),
  };
}
