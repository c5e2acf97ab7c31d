/** JSON document that is sent when an alert is raised or resolved, the same for every notification channel. */

import { foreignText } from '../../core/http/foreign-text.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import type { AlertDelivery } from './terms.ts';

/** Version of the document; incremented when a field changes its meaning or is removed. */
export const alertMessageVersion = 1;

/** The document. Times are ISO 8601, UTC. The fields are described in docs/monitoring.md. */
export type AlertMessage = ReturnType<typeof alertMessage>;

/** Maximum lines of evidence in the text; `evidence` has all of them. */
const shownEvidenceMax = 3;

/** Chat systems truncate or refuse much longer lines. */
const lineCharactersMax = 500;

type Change = Pick<AlertDelivery, 'id' | 'alert' | 'change'>;

/** Returns the message of a delivery. */
export function alertMessage({ id, alert, change }: Change) {
  const { kind, subject, level, text, evidence, nextStep } = alert;
  return {
    version: alertMessageVersion,
    text: textOf({ alert, change }),
    // Unique: the same message may arrive twice.
    id: `alert_${alert.id}_${id}`,
    alert: alert.id,
    change,
    ...{ kind: kind as string, subject, level, problem: text, evidence, nextStep },
    raisedAt: formatDateUs(alert.raisedAtUs),
    resolvedAt: alert.resolvedAtUs === null ? null : formatDateUs(alert.resolvedAtUs),
  };
}

/** Returns the message that tests a channel. */
export function testMessage(nowUs: number): AlertMessage {
  const alert = {
    ...({ id: 0, kind: 'disk', subject: '', level: 'warning', raisedAtUs: nowUs } as const),
    ...{ text: 'This is a test message.', evidence: ['Sent by `earshot alerts --test`.'] },
    ...{ nextStep: 'No action needed.', resolvedAtUs: null },
  };
  // The id is unique: a receiver that drops repeated messages shows each test.
  const message = alertMessage({ id: nowUs, alert, change: 'raised' });
  return { ...message, kind: 'test', text: `earshot: test message\n${alert.evidence[0]}` };
}

function textOf({ alert, change }: Omit<Change, 'id'>): string {
  const { kind, subject, level, text, evidence, nextStep } = alert;
  const about = subject === '' ? kind : `${kind} (${subject})`;
  const lines =
    change === 'resolved'
      ? [`earshot: resolved: ${about}`, `Problem: ${text}`]
      : [
          `earshot: ${level}: ${about}`,
          text,
          ...evidence.slice(0, shownEvidenceMax),
          `Next: ${nextStep}`,
        ];
  return lines.map(plainLine).join('\n');
}

/** Neutralizes text of other services: mentions, links and markup must not take effect. */
function plainLine(line: string): string {
  const shown = foreignText(line, { secrets: [], charactersMax: lineCharactersMax });
  return shown.replaceAll('<', '‹').replaceAll('>', '›').replaceAll('@', '(at)');
}
