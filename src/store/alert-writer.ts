/** Writes alerts, and what became of telling them. */
import type { Database } from 'better-sqlite3';
import { prepareSettleDelivery } from './alert-delivery-writer.ts';
import { prepareSettleFindings } from './alert-findings-writer.ts';
import type { AlertChange } from './alert-messages.ts';

/** Works inside a transaction of the caller's. */
export interface AlertWriter {
  /** Returns what the port's call of that name resolves with. */
  write(change: AlertChange): unknown;
}

export function createAlertWriter(database: Database): AlertWriter {
  const settleFindings = prepareSettleFindings(database);
  const settleDelivery = prepareSettleDelivery(database);
  return {
    write: (change) => {
      switch (change.kind) {
        case 'settle-findings':
          return settleFindings(change.options);
        case 'settle-delivery':
          return settleDelivery(change.options);
      }
    },
  };
}
