/** An alert, or its end, as it is told: one JSON document, the same for every channel. */
import type { AlertDelivery } from '../domain/alerts.ts';
import { formatDateUs } from '../domain/dates.ts';
import { printable } from '../domain/text.ts';

/** The form of the document; it grows when a field changes its meaning or goes. */
export const alertMessageVersion = 1;

/** Times are ISO 8601, UTC. */
export interface AlertMessage {
  version: typeof alertMessageVersion;
  /** A few lines for people; the field that the incoming webhooks of chat systems show. */
  text: string;
  /** Tells messages apart: the same one may come twice. */
  id: string;
  /** The alert's number, as `earshot alerts` shows it. */
  alert: number;
  change: AlertDelivery['change'];
  /** One of `alertKinds`, or `test`. */
  kind: string;
  /** A subscription or sink; '' where there is but one of what it is about. */
  subject: string;
  severity: string;
  cause: string;
  evidence: readonly string[];
  nextStep: string;
  raisedAt: string;
  /** Null while it lasts. */
  resolvedAt: string | null;
}

/** Figures in the text; all of them stand in `evidence`. */
const shownEvidenceMax = 3;

/** Chat systems cut, or refuse, what is much longer. */
const lineCharactersMax = 500;

export function alertMessage({
  id,
  alert,
  change,
}: Pick<AlertDelivery, 'id' | 'alert' | 'change'>): AlertMessage {
  const { kind, subject, severity, cause, evidence, nextStep } = alert;
  return {
    version: alertMessageVersion,
    text: textOf({ alert, change }),
    id: `alert_${alert.id}_${id}`,
    alert: alert.id,
    change,
    ...{ kind, subject, severity, cause, evidence, nextStep },
    raisedAt: formatDateUs(alert.raisedAtUs),
    resolvedAt: alert.resolvedAtUs === null ? null : formatDateUs(alert.resolvedAtUs),
  };
}

/** The document that tries a channel. */
export function testMessage(nowUs: number): AlertMessage {
  const cause = 'This is a test: nothing is wrong.';
  const evidence = ['It was sent by `earshot alerts --test`.'];
  return {
    version: alertMessageVersion,
    text: ['earshot: test: nothing is wrong', ...evidence].join('\n'),
    // Unique: a receiver that drops repeated messages shows each test.
    id: `alert_0_${nowUs}`,
    ...{ alert: 0, change: 'raised', kind: 'test', subject: '', severity: 'warning' },
    ...{ cause, evidence, nextStep: 'Nothing is to be done.' },
    ...{ raisedAt: formatDateUs(nowUs), resolvedAt: null },
  };
}

function textOf({ alert, change }: Pick<AlertDelivery, 'alert' | 'change'>): string {
  const { kind, subject, severity, cause, evidence, nextStep } = alert;
  const about = subject === '' ? kind : `${kind} of ${subject}`;
  const lines =
    change === 'resolved'
      ? [`earshot: resolved: ${about}`, `It was: ${cause}`]
      : [
          `earshot: ${severity}: ${about}`,
          cause,
          ...evidence.slice(0, shownEvidenceMax),
          `Next: ${nextStep}`,
        ];
  return lines.map(plainLine).join('\n');
}

/** Words of other services may stand in it: no mention of everybody, link or markup may come of them. */
function plainLine(line: string): string {
  const plain = printable(line).replaceAll('<', '‹').replaceAll('>', '›').replaceAll('@', '(at)');
  return plain.length <= lineCharactersMax
    ? plain
    : `${plain.slice(0, lineCharactersMax).toWellFormed()}…`;
}
