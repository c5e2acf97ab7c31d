/** Evaluates the status of a receiver, part by part, from the facts and the active alerts. */
import type { AlertFinding, AlertKind } from '../../domain/alerts.ts';
import { isDue, notComparedText, sumCoverage } from '../../domain/coverage.ts';
import { shortDateUs } from '../../domain/dates.ts';
import {
  type PartStatus,
  type ReaderStatus,
  type SinkStatus,
  type StatusFacts,
  type StatusPart,
  type SubscriptionStatus,
  statusLevels,
  statusParts,
} from '../../domain/status.ts';
import { sizeText } from '../../domain/text.ts';
import { cancelAhead, pauseAhead } from '../../watch/check-account.ts';
import { checkBackup, checkCertificate, checkDisk } from '../../watch/check-machine.ts';
import { checkRejected, checkSink } from '../../watch/check-sinks.ts';
import { agoText, lengthText, momentText } from '../../watch/situation.ts';
import { counted, whole } from '../output.ts';

type Evaluation = Omit<PartStatus, 'part'>;

/** Pure: the same facts give the same result. */
type Evaluate = (facts: StatusFacts) => Evaluation;

const evaluateReceiver: Evaluate = ({ receiver, log, atUs }) => {
  if (receiver === null) {
    return critical(
      'No receiver runs: nothing is taken, and nobody watches.',
      'Start it with `earshot start`, or check EARSHOT_LISTEN if one runs.',
    );
  }
  const { refusing, startedAtUs, pid } = receiver;
  if (refusing !== null) {
    return critical(`Notifications cannot be taken: ${refusing}`, 'Run `earshot doctor`.');
  }
  const up = startedAtUs === null ? '' : `, up for ${lengthText(atUs - startedAtUs)}`;
  const lastUs = log?.lastReceivedAtUs ?? null;
  const process = pid === null ? '' : ` (process ${pid})`;
  const last = lastUs === null ? 'nothing has come yet' : `the last came ${agoText(atUs - lastUs)}`;
  return well(`takes notifications${up}${process}; ${last}`);
};

const evaluateLog: Evaluate = ({ log }) => {
  if (log === null) return unused('not known');
  const { firstReceivedAtUs, usedBytes, indexBytes, pruned, quarantined } = log;
  const held =
    quarantined === 0
      ? 'nothing in quarantine'
      : `${counted(quarantined, 'body', 'bodies')} in quarantine (\`earshot quarantine list\`)`;
  const index = indexBytes === 0 ? '' : `, index ${sizeText(indexBytes)}`;
  const size = `${sizeText(usedBytes)}${index}; ${held}`;
  if (firstReceivedAtUs === null) return well(`empty, ${size}`);
  const kept = pruned === null ? 'since' : 'pruned to';
  return well(`${kept} ${shortDateUs(firstReceivedAtUs)} UTC, ${size}`);
};

const evaluateSubscriptions: Evaluate = (facts) => {
  const { subscriptions, log } = facts;
  if (subscriptions.length === 0) {
    return log?.lastReceivedAtUs === null
      ? warning(
          'No subscription is registered, so nothing will come.',
          'Write one into earshot.config.ts and run `earshot register`.',
        )
      : unused('none is registered here');
  }
  return notRunning(facts) ?? ending(facts) ?? well(summed(facts));
};

const evaluateCertificate: Evaluate = ({ behindProxy, certificate, alerts, atUs }) => {
  if (behindProxy) return unused('the proxy in front has it');
  if (certificate?.notAfterUs == null) {
    const failure =
      certificate?.lastFailure == null ? '' : ` It failed: ${certificate.lastFailure}`;
    return critical(
      `There is no certificate yet, so the catalogue cannot reach this endpoint.${failure}`,
      'A receiver that runs goes on trying; `earshot certificate show` tells why it failed last.',
    );
  }
  const { findings } = checkCertificate(certificate, { active: alerts, nowUs: atUs });
  const failure = certificate.lastFailure === null ? '' : '; the last renewal failed';
  const left = lengthText(certificate.notAfterUs - atUs);
  return worstOf(findings) ?? well(`valid for another ${left}${failure}`);
};

const evaluateCoverage: Evaluate = (facts) => {
  const { coverage, atUs } = facts;
  const sum = sumCoverage(coverage);
  if (sum === null) return unused('no subscription is registered, so no event is expected');
  const comparisonOff = isWatched(facts) ? facts.comparisonOff : 'No receiver runs.';
  if (sum.state === 'not-compared') {
    const when = { comparisonOff, nowUs: atUs };
    const part = unused(notComparedText(sum, when));
    return isDue(sum, when)
      ? { ...part, nextStep: 'Run `earshot reconcile` to compare now.' }
      : part;
  }
  const { expected, missing, recovered, late, comparedHours, unknownHours } = sum;
  // The watchdog waits for an hour: a person may only be checking, and fetch then.
  if (missing > 0 && !isWatched(facts)) {
    return warning(
      `${counted(missing, 'event')} of the last 7 days ${missing === 1 ? 'is' : 'are'} missing.`,
      'Run `earshot reconcile --since 7d` to recover them.',
    );
  }
  const counts = [
    missing === 0 ? 'none missing' : `${whole(missing)} missing`,
    ...(recovered === 0 ? [] : [`${whole(recovered)} recovered`]),
    ...(late === 0 ? [] : [`${whole(late)} late`]),
  ];
  const due = comparedHours + unknownHours;
  const hours = `${whole(comparedHours)} of ${whole(due)} h compared`;
  const found = `${counted(expected, 'event')}: ${counts.join(', ')}`;
  return well([`7 days, ${hours}; ${found}`, ...openText(facts)].join('; '));
};

const evaluateReaders: Evaluate = (facts) => {
  const readers = facts.readers.filter((one) => isShown(one, facts));
  if (readers.length === 0) return unused('none');
  const stuck = readers.find((one) => isStuck(one, facts));
  if (stuck !== undefined && isWatched(facts)) return behind(stuck, facts.atUs);
  const late = readers.filter((one) => one.behind > 0);
  const current = readers.filter((one) => one.behind === 0);
  const names = (some: readonly ReaderStatus[]) => listed(some.map(({ name }) => name));
  return well(
    [
      ...(current.length === 0 ? [] : [`${names(current)} up to date`]),
      ...late.map((one) => `${one.name} ${whole(one.behind)} behind`).slice(0, 3),
    ].join('; '),
  );
};

const evaluateSinks: Evaluate = (facts) => {
  const { sinks, rejectedConfig = null } = facts;
  if (sinks.length === 0 && rejectedConfig === null) return unused('none set up');
  const found = worstOf([
    ...sinks.flatMap((sink) => findingsOf(sink, facts)),
    // The status has no other place for the reason.
    ...checkRejected(rejectedConfig).findings.map((finding) => ({
      ...finding,
      cause: `${finding.cause.replace(/\.$/, '')}: ${rejectedConfig}`,
    })),
  ]);
  const waiting = sinks.reduce((sum, one) => sum + one.waiting, 0);
  const names = listed(sinks.map(({ name }) => name));
  return found ?? well(`${names}: ${waiting === 0 ? 'nothing waits' : `${whole(waiting)} wait`}`);
};

const evaluateSummaries: Evaluate = ({ summaries, atUs, rejectedConfig = null }) => {
  if (summaries === null && rejectedConfig !== null) {
    return unused('unknown while earshot.config.ts is rejected');
  }
  if (summaries === null || (summaries.mode === 'off' && summaries.waiting === 0)) {
    return unused('off');
  }
  const { waiting, nextDueAtUs, failed, requests, tokens } = summaries;
  const since =
    nextDueAtUs === null || nextDueAtUs >= atUs
      ? ''
      : `, the first for ${lengthText(atUs - nextDueAtUs)}`;
  const counts = [
    waiting === 0 ? 'none waits' : `${whole(waiting)} wait${since}`,
    ...(failed === 0 ? [] : [`${whole(failed)} failed`]),
  ];
  const asked = `${counted(requests, 'request')} and ${counted(tokens, 'token')} in 24 h`;
  return well(`${counts.join(', ')}; ${asked}`);
};

const evaluateDisk: Evaluate = ({ disk, alerts, atUs }) => {
  if (disk === null) return unused('its system does not say how much is free');
  const { findings } = checkDisk(disk, { active: alerts, nowUs: atUs });
  const { freeBytes, totalBytes } = disk;
  return worstOf(findings) ?? well(`${sizeText(freeBytes)} of ${sizeText(totalBytes)} free`);
};

const evaluateBackup: Evaluate = ({ backups, receiver, alerts, atUs }) => {
  if (backups === null) return unused('not known');
  const { made, failed, everyHours } = backups;
  const startedAtUs = receiver?.startedAtUs ?? null;
  const uptimes = startedAtUs === null ? [] : [{ fromUs: startedAtUs, toUs: atUs }];
  const { findings } = checkBackup(backups, { active: alerts, nowUs: atUs, uptimes });
  const every = everyHours === null ? '' : `, one every ${everyHours} h`;
  const hasFailed = failed !== null && failed.endedAtUs > (made?.endedAtUs ?? 0);
  const failure = hasFailed ? '; the last try failed' : '';
  if (made === null) {
    const none = unused(everyHours === null ? 'none was ever made' : `none yet${every}${failure}`);
    return worstOf(findings) ?? none;
  }
  const size = made.bytes === null ? '' : `, ${sizeText(made.bytes)}`;
  const age = lengthText(atUs - made.startedAtUs);
  return worstOf(findings) ?? well(`${age} old${size}${every}${failure}`);
};

const evaluateAlerts: Evaluate = (facts) => {
  const { alerts } = facts;
  if (alerts.length === 0) {
    return isWatched(facts)
      ? well('none is active')
      : unused('none is active, but no watchdog runs');
  }
  const names = alerts.map(({ kind, subject }) =>
    subject === '' ? kind : `${kind} of ${subject}`,
  );
  const level = alerts.some(({ severity }) => severity === 'critical') ? 'critical' : 'warning';
  return {
    level,
    text: `${alerts.length} last: ${listed(names)}`,
    nextStep: 'Run `earshot alerts` for what they rest on.',
  };
};

const evaluations: Record<StatusPart, Evaluate> = {
  receiver: evaluateReceiver,
  log: evaluateLog,
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

/** The part that shows each kind of alert. */
const partOf: Readonly<Record<AlertKind, StatusPart>> = {
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

/** One for each part, in their order. A part with an active alert is not well. */
export function evaluateStatus(facts: StatusFacts): PartStatus[] {
  return statusParts.map((part) => {
    const own = evaluatePart(part, facts);
    const alert = worstOf(facts.alerts.filter(({ kind }) => partOf[kind] === part));
    const rank = ({ level }: Evaluation) => statusLevels.indexOf(level);
    // The alert has the better text, where both are of the same weight.
    return { part, ...(alert === null || rank(own) > rank(alert) ? own : alert) };
  });
}

function evaluatePart(part: StatusPart, facts: StatusFacts): Evaluation {
  const failure = facts.failures.find((one) => one.part === part);
  if (failure === undefined) return evaluations[part](facts);
  return warning(
    `It cannot be told how this stands: ${failure.reason}`,
    'Put that right, or run `earshot doctor`, which looks for the reason.',
  );
}

const well = (text: string): Evaluation => ({ level: 'well', text, nextStep: null });

const unused = (text: string): Evaluation => ({ level: 'unused', text, nextStep: null });

const warning = (text: string, nextStep: string): Evaluation => ({
  level: 'warning',
  text,
  nextStep,
});

const critical = (text: string, nextStep: string): Evaluation => ({
  level: 'critical',
  text,
  nextStep,
});

/** The worst of the findings, with the number of the others; null where there is none. */
function worstOf(
  findings: readonly Pick<AlertFinding, 'severity' | 'cause' | 'nextStep'>[],
): Evaluation | null {
  const first = findings.find(({ severity }) => severity === 'critical') ?? findings[0];
  if (first === undefined) return null;
  const more = findings.length === 1 ? '' : ` (and ${findings.length - 1} more)`;
  return { level: first.severity, text: `${first.cause}${more}`, nextStep: first.nextStep };
}

/** The watchdog checks while a receiver runs: then what it tolerates for a while is no fault yet. */
const isWatched = ({ receiver }: StatusFacts) => receiver !== null;

/** The first three items, and the count of the others: `a, b, c and 4 more`. */
function listed(items: readonly string[]): string {
  const shown = items.slice(0, 3).join(', ');
  return items.length > 3 ? `${shown} and ${items.length - 3} more` : shown;
}

/** What the counts leave out. */
function openText({ coverage, comparisonOff, receiver }: StatusFacts): string[] {
  const open = coverage.filter(({ state }) => state === 'not-compared');
  const names = listed(open.map(({ subscription }) => subscription));
  return [
    ...(open.length === 0 ? [] : [`no hour of ${names} was compared yet`]),
    ...(receiver === null || comparisonOff === null
      ? []
      : [`not compared automatically: ${comparisonOff.replace(/\.$/, '')}`]),
  ];
}

/** As long as the watchdog bears with a sink. */
const behindUs = 900_000_000;

const isShown = (reader: ReaderStatus, { summaries }: StatusFacts) =>
  reader.of !== 'sink' && !(reader.of === 'summaries' && summaries?.mode === 'off');

/** How far a command of the user's has got is the user's matter. */
const isStuck = ({ of, unreadSinceUs }: ReaderStatus, { atUs }: StatusFacts) =>
  of !== 'tail' && unreadSinceUs !== null && atUs - unreadSinceUs > behindUs;

const behind = ({ name, behind: count, unreadSinceUs }: ReaderStatus, atUs: number) =>
  warning(
    `The ${name} of the log ${name === 'summaries' ? 'are' : 'is'} ${counted(count, 'notification')} behind; the first came ${lengthText(atUs - (unreadSinceUs ?? atUs))} ago.`,
    'It catches up by itself. When the number does not fall, look for the reason in the log of the receiver.',
  );

function findingsOf(sink: SinkStatus, { alerts, atUs }: StatusFacts): readonly AlertFinding[] {
  const view = {
    ...{ ...sink, sink: sink.name, error: sink.lastError },
    oldestQueuedAtUs: sink.oldestWaitingAtUs,
    oldestLiveQueuedAtUs: sink.oldestLiveWaitingAtUs,
    // Whether it moves takes two checks, which the watchdog alone makes.
    unread: null,
  };
  return checkSink(view, sink.fault, { active: alerts, nowUs: atUs }).findings;
}

const look = (name: string) =>
  `Look at it with \`earshot subscriptions show ${name}\`, and run \`earshot maintain\`.`;

/** The watchdog gives maintenance the time to put it right, and tells of it then. */
function notRunning(facts: StatusFacts): Evaluation | null {
  if (isWatched(facts)) return null;
  const names = facts.subscriptions.filter(isStopped).map(({ name }) => name);
  if (names.length === 0) return null;
  return warning(
    `Of the subscriptions, ${listed(names)} should run and ${names.length === 1 ? 'does' : 'do'} not.`,
    'Run `earshot register` to make them run.',
  );
}

const isStopped = ({ state, pausedOnPurpose }: SubscriptionStatus) =>
  state !== 'running' && !pausedOnPurpose;

function ending({ subscriptions, atUs }: StatusFacts): Evaluation | null {
  for (const { name, pausesAtUs, cancelsAtUs } of subscriptions) {
    if (cancelsAtUs !== null && cancelsAtUs - atUs <= cancelAhead.warningUs) {
      return warning(
        `The catalogue will delete ${name} at ${momentText(cancelsAtUs)}.`,
        look(name),
      );
    }
    if (pausesAtUs !== null && pausesAtUs - atUs <= pauseAhead.warningUs) {
      return warning(`The catalogue will pause ${name} at ${momentText(pausesAtUs)}.`, look(name));
    }
  }
  return null;
}

function summed({ subscriptions, atUs }: StatusFacts): string {
  const running = subscriptions.filter(({ state }) => state === 'running');
  const last = ({ name, lastDeliveryAtUs }: SubscriptionStatus) =>
    `${name} (${lastDeliveryAtUs === null ? 'nothing yet' : agoText(atUs - lastDeliveryAtUs)})`;
  const others = subscriptions.filter(({ state }) => state !== 'running');
  return [
    running.length === 0 ? 'none runs' : `${running.length} run: ${listed(running.map(last))}`,
    ...(others.length === 0
      ? []
      : [listed(others.map(({ name, state }) => `${name} is ${stateText[state]}`))]),
  ].join('; ');
}

const stateText: Record<SubscriptionStatus['state'], string> = {
  running: 'running',
  paused: 'paused',
  unfinished: 'being changed',
  absent: 'not at the catalogue',
};
