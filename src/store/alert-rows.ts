/** Alerts as rows: how they are read. */
import type { Alert } from '../domain/alerts.ts';

export type StoredAlert = Omit<Alert, 'evidence'> & { evidence: string };

/** For a statement that may call the alerts' table `alert`. */
export const alertColumns = `alert.id, alert.kind, alert.subject, alert.severity, alert.cause,
  alert.evidence, alert.next_step AS nextStep, alert.raised_at_us AS raisedAtUs,
  alert.resolved_at_us AS resolvedAtUs`;

export function alertIn({ evidence, ...row }: StoredAlert): Alert {
  // Written by our own writer, from the same type.
  return { ...row, evidence: JSON.parse(evidence) as string[] };
}

/** How long a delivery that was given up is shown. */
export const givenUpShownUs = 7 * 86_400_000_000;
