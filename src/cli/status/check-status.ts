/** Evaluates the status of a receiver, part by part, from the facts and the active alerts. */

import type { AlertKind } from '../../domain/alerts.ts';
import { isDue, notComparedText, sumCoverage } from '../../domain/coverage.ts';
import { shortDateUs } from '../../domain/dates.ts';
import { sinkTrouble } from '../../domain/sinks.ts';
import {
  type PartStatus,
  type ReaderStatus,
  type SinkStatus,
  type StatusFacts,
  type StatusPart,
  sinkCounts,
  statusLevels,
  statusParts,
} from '../../domain/status.ts';
import { refusalText } from '../../domain/summaries.ts';
import { sizeText } from '../../domain/text.ts';
import { dayUs } from '../../domain/time-units.ts';
import { backupRow, certificateRow, diskRow } from '../../watch/check-machine.ts';
import { checkDeadLetters, checkDelivery } from '../../watch/check-sinks.ts';
import type { AlertRow, Problem } from '../../watch/situation.ts';
import { agoText, lengthText } from '../../watch/texts.ts';
import { counted, whole } from '../output.ts';
import { evaluateSubscriptions } from './check-subscriptions.ts';
import {
  critical,
  type Evaluate,
  type Evaluation,
  isWatched,
  listed,
  unused,
  warning,
  well,
} from './evaluation.ts';

const evaluateReceiver: Evaluate = ({ receiver, hasEndpoint, log, atUs }) => {
  if (receiver === null) {
    const [what, variable] = hasEndpoint
      ? ['no notifications are accepted', 'EARSHOT_LISTEN']
      : ['no queue is read', 'EARSHOT_CONSOLE_LISTEN'];
    return critical(
      `The receiver is not running: ${what} and no alerts are raised.`,
      `Start the receiver with \`earshot start\`. If the receiver is running, check ${variable}.`,
    );
  }
  const { refusing, startedAtUs, pid } = receiver;
  if (refusing !== null) {
    return critical(`Notifications are refused: ${refusing}`, 'Run `earshot doctor`.');
  }
  const up = startedAtUs === null ? '' : `, up for ${lengthText(atUs - startedAtUs)}`;
  const lastUs = log?.lastReceivedAtUs ?? null;
  const process = pid === null ? '' : ` (process ${pid})`;
  const last = lastUs === null ? 'none received yet' : `last received ${agoText(atUs - lastUs)}`;
  return well(`accepting notifications${up}${process}; ${last}`);
};

const evaluateLog: Evaluate = ({ log }) => {
  if (log === null) return unused('unknown');
  const { firstReceivedAtUs, usedBytes, indexBytes, pruned, quarantined } = log;
  const quarantine =
    quarantined === 0
      ? 'quarantine empty'
      : `${counted(quarantined, 'body', 'bodies')} in quarantine (\`earshot quarantine list\`)`;
  const index = indexBytes === 0 ? '' : `, index ${sizeText(indexBytes)}`;
  const size = `${sizeText(usedBytes)}${index}; ${quarantine}`;
  if (firstReceivedAtUs === null) return well(`empty, ${size}`);
  const start = pruned === null ? 'since' : 'pruned, since';
  return well(`${start} ${shortDateUs(firstReceivedAtUs)} UTC, ${size}`);
};

const evaluateReceivers: Evaluate = ({ receivers }) => {
  if (receivers === null) return unused('no shared log');
  const { lag, fault } = receivers.find(({ isThis }) => isThis) ?? { lag: 0, fault: null };
  const lagText = `lag of this one: ${counted(lag, 'entry', 'entries')}`;
  if (fault === null) return well(`${counted(receivers.length, 'receiver')}; ${lagText}`);
  const cause = 'This receiver applies no entries of the shared log, so its queries are old';
  return critical(`${cause}: ${fault}`, 'Check the log and the disk of this receiver.');
};

const evaluateCertificate: Evaluate = (facts) => {
  const { hasEndpoint, behindProxy, certificate, atUs } = facts;
  if (!hasEndpoint) return unused('not needed: all subscriptions are pull');
  if (behindProxy) return unused('provided by the proxy');
  if (certificate?.notAfterUs == null) {
    const failure =
      certificate?.lastFailure == null ? '' : ` Last error: ${certificate.lastFailure}`;
    return critical(
      `There is no certificate yet, so the catalogue cannot reach this endpoint.${failure}`,
      'A running receiver retries automatically. `earshot certificate show` prints the last error.',
    );
  }
  const failure = certificate.lastFailure === null ? '' : '; the last renewal failed';
  const left = lengthText(certificate.notAfterUs - atUs);
  return (
    worstOf(problemsOf(certificateRow, certificate, facts)) ??
    well(`valid for another ${left}${failure}`)
  );
};

const evaluateCoverage: Evaluate = (facts) => {
  const { coverage, atUs } = facts;
  const sum = sumCoverage(coverage);
  if (sum === null) return unused('no subscription registered, so nothing is expected');
  const comparisonOff = isWatched(facts) ? facts.comparisonOff : 'The receiver is not running.';
  if (sum.state === 'not-compared') {
    const when = { comparisonOff, nowUs: atUs };
    const part = unused(notComparedText(sum, when));
    return isDue(sum, when)
      ? { ...part, nextStep: 'Run `earshot reconcile` to compare now.' }
      : part;
  }
  const { expected, missing, recovered, late, comparedHours, unknownHours } = sum;
  // While a receiver runs, the watchdog reports them, an hour later: a person may fetch them until then.
  if (missing > 0 && !isWatched(facts)) {
    return warning(
      `${counted(missing, 'notification')} of the last 7 days ${missing === 1 ? 'is' : 'are'} missing.`,
      'To recover missing notifications: `earshot reconcile --since 7d`.',
    );
  }
  const counts = [
    missing === 0 ? 'none missing' : `${whole(missing)} missing`,
    ...(recovered === 0 ? [] : [`${whole(recovered)} recovered`]),
    ...(late === 0 ? [] : [`${whole(late)} late`]),
  ];
  const due = comparedHours + unknownHours;
  const hours = `${whole(comparedHours)} of ${whole(due)} h compared`;
  const found = `${counted(expected, 'event')} expected: ${counts.join(', ')}`;
  return well([`7 days, ${hours}; ${found}`, ...uncomparedText(facts)].join('; '));
};

const evaluateReaders: Evaluate = (facts) => {
  const readers = facts.readers.filter((one) => isShown(one, facts));
  if (readers.length === 0) return unused('none');
  const stuck = readers.find((one) => isStuck(one, facts));
  if (stuck !== undefined && isWatched(facts)) return lagWarning(stuck, facts.atUs);
  const lagging = readers.filter((one) => one.behind > 0);
  const current = readers.filter((one) => one.behind === 0);
  const names = (some: readonly ReaderStatus[]) => listed(some.map(({ name }) => name));
  return well(
    [
      ...(current.length === 0 ? [] : [`${names(current)} up to date`]),
      ...lagging
        .map((one) => `lag of ${one.name}: ${counted(one.behind, 'notification')}`)
        .slice(0, 3),
    ].join('; '),
  );
};

const evaluateSinks: Evaluate = (facts) => {
  const { sinks, rejectedConfig = null } = facts;
  if (sinks.length === 0 && rejectedConfig === null) return unused('none configured');
  const found = worstOf([
    ...sinks.flatMap((sink) => sinkProblems(sink, facts)),
    ...(rejectedConfig === null
      ? []
      : [
          {
            severity: 'warning' as const,
            cause: `The current earshot.config.ts is rejected: ${rejectedConfig}`,
            nextStep: 'Fix the fault. `earshot doctor` checks the configuration.',
          },
        ]),
  ]);
  const waiting = sinks.reduce((sum, one) => sum + one.waiting, 0);
  const names = listed(sinks.map(({ name }) => name));
  return found ?? well(`${names}: ${waiting === 0 ? 'queue empty' : `${whole(waiting)} queued`}`);
};

const evaluateSummaries: Evaluate = ({ summaries, atUs, rejectedConfig = null }) => {
  if (summaries === null && rejectedConfig !== null) {
    return unused('unknown while earshot.config.ts is rejected');
  }
  if (summaries === null || (summaries.mode === 'off' && summaries.waiting === 0)) {
    return unused('off');
  }
  const { waiting, dueAtUs, requests, tokens, refusedAnswer } = summaries;
  if (refusedAnswer !== null) {
    const { cause, nextStep } = refusalText(refusedAnswer);
    return warning(cause, nextStep);
  }
  const since =
    dueAtUs === null || dueAtUs >= atUs ? '' : `, overdue for ${lengthText(atUs - dueAtUs)}`;
  const count = waiting === 0 ? 'none waiting' : `${whole(waiting)} waiting${since}`;
  const usage = `${counted(requests, 'request')} and ${counted(tokens, 'token')} in 24 h`;
  return well(`${count}; ${usage}`);
};

const evaluateDisk: Evaluate = (facts) => {
  const { disk } = facts;
  if (disk === null) return unused('free space unknown on this system');
  const { freeBytes, totalBytes } = disk;
  const problems = problemsOf(diskRow, disk, facts);
  return worstOf(problems) ?? well(`${sizeText(freeBytes)} of ${sizeText(totalBytes)} free`);
};

const evaluateBackup: Evaluate = (facts) => {
  const { backups, atUs } = facts;
  if (backups === null) return unused('unknown');
  const { made, failed, everyHours } = backups;
  const problems = problemsOf(backupRow, backups, facts);
  const every = everyHours === null ? '' : `, every ${everyHours} h`;
  const hasFailed = failed !== null && failed.endedAtUs > (made?.endedAtUs ?? 0);
  const failure = hasFailed ? '; the last attempt failed' : '';
  if (made === null) {
    const none = unused(everyHours === null ? 'none made yet' : `none yet${every}${failure}`);
    return worstOf(problems) ?? none;
  }
  const size = made.bytes === null ? '' : `, ${sizeText(made.bytes)}`;
  const age = lengthText(atUs - made.startedAtUs);
  return worstOf(problems) ?? well(`${age} old${size}${every}${failure}`);
};

const evaluateAlerts: Evaluate = (facts) => {
  const { alerts } = facts;
  if (alerts.length === 0) {
    return isWatched(facts)
      ? well('no active alerts')
      : unused('no active alerts, but only a running receiver raises alerts');
  }
  const names = alerts.map(({ kind, subject }) => (subject === '' ? kind : `${kind} (${subject})`));
  const level = alerts.some(({ severity }) => severity === 'critical') ? 'critical' : 'warning';
  return {
    level,
    text: `${alerts.length} active: ${listed(names)}`,
    nextStep: 'Run `earshot alerts` for details.',
  };
};

const evaluations: Record<StatusPart, Evaluate> = {
  receiver: evaluateReceiver,
  log: evaluateLog,
  receivers: evaluateReceivers,
  subscriptions: evaluateSubscriptions,
  certificate: evaluateCertificate,
  coverage: evaluateCoverage,
  readers: evaluateReaders,
  sinks: evaluateSinks,
  summaries: evaluateSummaries,
  disk: evaluateDisk,
  backup: evaluateBackup,
  alerts: evaluateAlerts,
};

/** Part of the status in which each kind of alert is shown. */
const partOf: Readonly<Record<AlertKind, StatusPart>> = {
  silence: 'subscriptions',
  'lost-pushes': 'coverage',
  missing: 'coverage',
  lifetime: 'subscriptions',
  'not-running': 'subscriptions',
  queue: 'subscriptions',
  'queue-reader': 'subscriptions',
  certificate: 'certificate',
  disk: 'disk',
  intake: 'receiver',
  receiver: 'receivers',
  database: 'receivers',
  sink: 'sinks',
  'sink-refused': 'sinks',
  backup: 'backup',
};

/** Returns the status of each part, in their order; `receivers` only with a shared log. One with an alert is not well. */
export function evaluateStatus(facts: StatusFacts): PartStatus[] {
  const parts = statusParts.map((part) => {
    const own = evaluatePart(part, facts);
    const alert = worstOf(facts.alerts.filter(({ kind }) => partOf[kind] === part));
    const rank = ({ level }: Evaluation) => statusLevels.indexOf(level);
    // At equal severity, the alert has the better text.
    return { part, ...(alert === null || rank(own) > rank(alert) ? own : alert) };
  });
  return parts.filter(({ part, level }) => part !== 'receivers' || level !== 'unused');
}

function evaluatePart(part: StatusPart, facts: StatusFacts): Evaluation {
  const failure = facts.failures.find((one) => one.part === part);
  if (failure === undefined) return evaluations[part](facts);
  return warning(`The status is unknown: ${failure.reason}`, 'For details, run `earshot doctor`.');
}

/** Returns the worst finding, with the number of the others; null without findings. */
function worstOf(
  findings: readonly Pick<Problem, 'severity' | 'cause' | 'nextStep'>[],
): Evaluation | null {
  const first = findings.find(({ severity }) => severity === 'critical') ?? findings[0];
  if (first === undefined) return null;
  const more = findings.length === 1 ? '' : ` (and ${findings.length - 1} more)`;
  return { level: first.severity, text: `${first.cause}${more}`, nextStep: first.nextStep };
}

/** Describes what the counts leave out. */
function uncomparedText({ coverage, comparisonOff, receiver }: StatusFacts): string[] {
  const uncompared = coverage.filter(({ state }) => state === 'not-compared');
  const names = listed(uncompared.map(({ subscription }) => subscription));
  return [
    ...(uncompared.length === 0 ? [] : [`not compared yet: ${names}`]),
    ...(receiver === null || comparisonOff === null
      ? []
      : [`automatic comparison is off: ${comparisonOff.replace(/\.$/, '')}`]),
  ];
}

/** Tolerated lag, the same as for sinks in the watchdog. */
const lagMaxUs = 900_000_000;

/** Tolerated lag of fetching records: one request for each of them, at a limited rate. */
const recordsLagMaxUs = 2 * dayUs;

const isShown = (reader: ReaderStatus, { summaries }: StatusFacts) =>
  reader.of !== 'sink' && !(reader.of === 'summaries' && summaries?.mode === 'off');

/** Ignores the readers of `earshot tail`, which only run while a user runs them. */
const isStuck = ({ of, unreadSinceUs }: ReaderStatus, { atUs }: StatusFacts) =>
  of !== 'tail' &&
  unreadSinceUs !== null &&
  atUs - unreadSinceUs > (of === 'records' ? recordsLagMaxUs : lagMaxUs);

const lagWarning = ({ name, behind: lag, unreadSinceUs }: ReaderStatus, atUs: number) =>
  warning(
    `Lag of ${name}: ${counted(lag, 'notification')}, the oldest received ${lengthText(atUs - (unreadSinceUs ?? atUs))} ago.`,
    'No action is needed while the lag decreases. Otherwise check the log of the receiver.',
  );

/** Returns the problem that a check of the watchdog finds now, if any. */
function problemsOf<Subject>(
  { kind, check }: AlertRow<Subject>,
  subject: Subject,
  { alerts, atUs: nowUs, receiver }: StatusFacts,
): Problem[] {
  const alert = alerts.find((one) => one.kind === kind);
  const result = check(subject, { nowUs, alert, upSinceUs: receiver?.startedAtUs ?? 0 });
  return result === null || result === 'unchecked' ? [] : [result];
}

/** Returns the problems of a sink. A sink that fails is reported at once, an alert is raised later. */
function sinkProblems(sink: SinkStatus, { alerts, atUs: nowUs }: StatusFacts): Problem[] {
  const alert = alerts.find(({ kind, subject }) => kind === 'sink' && subject === sink.name);
  const counts = sinkCounts(sink);
  const view = { ...counts, isSetUp: sink.isSetUp, fault: sink.fault };
  const trouble = sinkTrouble(counts, nowUs);
  const failing =
    trouble === null || sink.isSetUp === false
      ? null
      : {
          severity: 'warning' as const,
          cause: `The sink ${sink.name} does not deliver: ${trouble}.`,
          evidence: [],
          nextStep: 'Fix the target: delivery resumes automatically. See `earshot sinks list`.',
        };
  const delivery = checkDelivery(view, { nowUs, alert }) ?? failing;
  return [delivery, checkDeadLetters(view)].filter((one) => one !== null);
}
