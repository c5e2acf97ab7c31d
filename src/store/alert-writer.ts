/** Writes alerts, and what became of telling them. */
import type { Database } from 'better-sqlite3';
import { prepareSettleDelivery } from './alert-delivery-writer.ts';
import { prepareSettleFindings } from './alert-findings-writer.ts';
import type { AlertChange } from './alert-messages.ts';
import { type ChangeWriter, createChangeWriter } from './change-writer.ts';

export type AlertWriter = ChangeWriter<AlertChange>;

export function createAlertWriter(database: Database): AlertWriter {
  return createChangeWriter<AlertChange>({
    'settle-findings': prepareSettleFindings(database),
    'settle-delivery': prepareSettleDelivery(database),
  });
}
