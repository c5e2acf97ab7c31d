/** What the store's threads are asked about alerts. */
import type { Alerts } from '../domain/alerts.ts';

type Options<Call extends keyof Alerts> = Parameters<Alerts[Call]>[0];

export type SettleFindingsOptions = Options<'settleFindings'>;
export type SettleDeliveryOptions = Options<'settleDelivery'>;
export type DueDeliveriesOptions = Options<'dueDeliveries'>;

/** A change: one transaction on the writer thread. */
export type AlertChange =
  | { kind: 'settle-findings'; options: SettleFindingsOptions }
  | { kind: 'settle-delivery'; options: SettleDeliveryOptions };

/** A question for the query thread. */
export type AlertQuestion =
  | { kind: 'alerts'; options: Options<'alerts'> }
  | { kind: 'due-deliveries'; options: DueDeliveriesOptions }
  | { kind: 'untold'; nowUs: number };
