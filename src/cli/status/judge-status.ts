/** Judges how a receiver stands, part by part, from the facts and the alerts that last. */
import { type AlertKind, alertKinds } from '../../domain/alerts.ts';
import {
  type PartStatus,
  type StatusFacts,
  type StatusPart,
  statusLevels,
  statusParts,
} from '../../domain/status.ts';
import { judgeAlerts } from './judge-alerts.ts';
import { judgeBackups } from './judge-backups.ts';
import { judgeCoverage } from './judge-coverage.ts';
import { judgeLog } from './judge-log.ts';
import { judgeCertificateLeft, judgeDiskRoom } from './judge-machine.ts';
import { judgeReaders } from './judge-readers.ts';
import { judgeReceiver } from './judge-receiver.ts';
import { judgeSinkStates } from './judge-sinks.ts';
import { judgeSubscriptions } from './judge-subscriptions.ts';
import { judgeSummaries } from './judge-summaries.ts';
import { type Judge, type Judgement, warning, worstOf } from './judgement.ts';

const judges: Record<StatusPart, Judge> = {
  receiver: judgeReceiver,
  log: judgeLog,
  subscriptions: judgeSubscriptions,
  certificate: judgeCertificateLeft,
  coverage: judgeCoverage,
  readers: judgeReaders,
  sinks: judgeSinkStates,
  summaries: judgeSummaries,
  disk: judgeDiskRoom,
  backup: judgeBackups,
  alerts: judgeAlerts,
};

/** Where each kind of alert is told. */
const partOf: Record<AlertKind, Exclude<StatusPart, 'alerts'>> = {
  silence: 'subscriptions',
  'lost-pushes': 'coverage',
  missing: 'coverage',
  unknown: 'coverage',
  'auto-pause': 'subscriptions',
  cancellation: 'subscriptions',
  'not-running': 'subscriptions',
  certificate: 'certificate',
  disk: 'disk',
  intake: 'receiver',
  sink: 'sinks',
  'sink-refused': 'sinks',
  backup: 'backup',
};

/** One for each part, in their order. A lasting alert is the watchdog's word: its part is not well. */
export function judgeStatus(facts: StatusFacts): Promise<PartStatus[]> {
  return Promise.all(
    statusParts.map(async (part) => ({
      part,
      ...worse(await judged(part, facts), told(part, facts)),
    })),
  );
}

async function judged(part: StatusPart, facts: StatusFacts): Promise<Judgement> {
  const failure = facts.failures.find((one) => one.part === part);
  if (failure === undefined) return judges[part](facts);
  return warning(
    `It cannot be told how this stands: ${failure.reason}`,
    'Put that right, or run `earshot doctor`, which looks for the reason.',
  );
}

/** What the alerts of a part say; null without any. */
function told(part: StatusPart, { alerts }: StatusFacts): Judgement | null {
  const kinds = alertKinds.filter((kind) => partOf[kind] === part);
  return worstOf(alerts.filter(({ kind }) => kinds.includes(kind)));
}

/** The watchdog's words, where both are of the same weight. */
function worse(own: Judgement, alert: Judgement | null): Judgement {
  if (alert === null) return own;
  const rank = ({ level }: Judgement) => statusLevels.indexOf(level);
  return rank(own) > rank(alert) ? own : alert;
}
