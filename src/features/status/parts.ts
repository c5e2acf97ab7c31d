/** Evaluates the parts of the status from its facts. Pure: the same facts give the same result. */

import { queueOutlook } from '../../admin/pull-queue.ts';
import { evaluate, type Situation, worstOf } from '../../core/terms/check.ts';
import { shortDateUs } from '../../core/terms/dates.ts';
import { type Evaluation, evaluation, isProblem, ok } from '../../core/terms/evaluation.ts';
import {
  agoText,
  counted,
  countText,
  lengthText,
  listed,
  sizeText,
} from '../../core/terms/formats.ts';
import type { AlertKind } from '../../core/terms/kinds.ts';
import { dayUs, minuteUs } from '../../core/terms/time-units.ts';
import { isDue, notComparedText, sumCoverage } from '../coverage/coverage.ts';
import { evaluateSink, sinkConfigCheck } from '../sinks/report.ts';
import { coverageChecks, subscriptionChecks } from '../subscriptions/checks.ts';
import type { SubscriptionState } from '../subscriptions/state.ts';
import { refusalText } from '../summary/terms.ts';
import { backupCheck, evaluateCertificate, evaluateDisk } from './machine.ts';
import {
  type PartStatus,
  type ReaderStatus,
  type Status,
  type StatusFacts,
  type StatusPart,
  statusParts,
} from './status.ts';

type Known = Omit<Status, 'parts'> & { situation: Situation };

const receiver = ({ receiver, hasEndpoint, log, atUs }: Known): Evaluation => {
  if (receiver === null) {
    const [what, variable] = hasEndpoint
      ? ['no notifications are accepted', 'EARSHOT_LISTEN']
      : ['no queue is read', 'EARSHOT_CONSOLE_LISTEN'];
    return evaluation(
      'critical',
      `The receiver is not running: ${what} and no alerts are raised.`,
      `Start the receiver with \`earshot start\`. If the receiver is running, check ${variable}.`,
    );
  }
  const { refusing, startedAtUs, pid } = receiver;
  if (refusing !== null) {
    return evaluation(
      'critical',
      `Notifications are refused: ${refusing}`,
      'Run `earshot doctor`.',
    );
  }
  const up = startedAtUs === null ? '' : `, up for ${lengthText(atUs - startedAtUs)}`;
  const lastUs = log?.lastReceivedAtUs ?? null;
  const process = pid === null ? '' : ` (process ${pid})`;
  const last = lastUs === null ? 'none received yet' : `last received ${agoText(atUs - lastUs)}`;
  return ok(`accepting notifications${up}${process}; ${last}`);
};

const log = ({ log }: Known): Evaluation => {
  if (log === null) return ok('unknown');
  const { firstReceivedAtUs, usedBytes, indexBytes, pruned, quarantined } = log;
  const quarantine =
    quarantined === 0
      ? 'quarantine empty'
      : `${counted(quarantined, 'body', 'bodies')} in quarantine (\`earshot quarantine list\`)`;
  const index = indexBytes === 0 ? '' : `, index ${sizeText(indexBytes)}`;
  const size = `${sizeText(usedBytes)}${index}; ${quarantine}`;
  if (firstReceivedAtUs === null) return ok(`empty, ${size}`);
  const start = pruned === null ? 'since' : 'pruned, since';
  return ok(`${start} ${shortDateUs(firstReceivedAtUs)} UTC, ${size}`);
};

const receivers = ({ receivers }: Known): Evaluation => {
  const { lag, fault } = receivers?.find(({ isThis }) => isThis) ?? { lag: 0, fault: null };
  if (fault === null) {
    const lagText = `lag of this one: ${counted(lag, 'entry', 'entries')}`;
    return ok(`${counted(receivers?.length ?? 0, 'receiver')}; ${lagText}`);
  }
  const cause = 'This receiver applies no entries of the shared log, so its queries are old';
  return evaluation(
    'critical',
    `${cause}: ${fault}`,
    'Check the log and the disk of this receiver.',
  );
};

const subscriptions = ({ subscriptions, log, atUs }: Known): Evaluation => {
  if (subscriptions.length === 0) {
    return log?.lastReceivedAtUs === null
      ? evaluation(
          'warning',
          'No subscription is registered, so no notifications will arrive.',
          'Add a subscription to earshot.config.ts and run `earshot register`.',
        )
      : ok('none registered here');
  }
  const problem = worstOf(subscriptions.map((one) => one.evaluation).filter(isProblem));
  if (problem !== undefined) return problem;
  const texts = subscriptions.map((one) => `${one.name} (${one.evaluation.text})`);
  const queues = subscriptions.flatMap((one) => queueText(one, atUs) ?? []);
  return ok([listed(texts), ...queues].join('; '));
};

/** Formats for example: `queue of alps: 1,240 entries, the oldest 3.5 h old`. */
function queueText({ name, queue }: SubscriptionState, nowUs: number): string | null {
  if (queue === null) return null;
  const { length, oldestAgeUs } = queueOutlook(queue, nowUs);
  if (length === null) return `queue of ${name}: not read yet`;
  if (length === 0) return `queue of ${name}: empty`;
  const age = oldestAgeUs ? `, the oldest ${lengthText(oldestAgeUs)} old` : '';
  return `queue of ${name}: ${counted(length, 'entry', 'entries')}${age}`;
}

const stateTexts: Record<SubscriptionState['state'], string> = {
  running: 'running',
  paused: 'paused on purpose',
  unfinished: 'being changed',
  absent: 'not in the catalogue',
};

/** Evaluates a registered subscription. */
function evaluateSubscription(one: SubscriptionState, situation: Situation): Evaluation {
  const { name: subject, state, lastDeliveryAtUs } = one;
  const last =
    lastDeliveryAtUs === null
      ? 'no notification yet'
      : `last notification ${agoText(situation.nowUs - lastDeliveryAtUs)}`;
  const fine = ok(state === 'running' ? `running, ${last}` : stateTexts[state]);
  return evaluate(subscriptionChecks, one, { subject, situation, fine });
}

const certificate = ({ hasEndpoint, behindProxy, certificate, situation }: Known): Evaluation => {
  if (!hasEndpoint) return ok('not needed: all subscriptions are pull');
  if (behindProxy) return ok('provided by the proxy');
  return evaluateCertificate(certificate, situation);
};

const coverage = (facts: Known): Evaluation => {
  const { coverage, atUs, subscriptions, situation } = facts;
  const problem = worstOf(
    subscriptions
      .map((one) => evaluate(coverageChecks, one, { subject: one.name, situation, fine: ok('') }))
      .filter(isProblem),
  );
  if (problem !== undefined) return problem;
  const sum = sumCoverage(coverage);
  if (sum === null) return ok('no subscription registered, so nothing is expected');
  const comparisonOff =
    facts.receiver === null ? 'The receiver is not running.' : facts.comparisonOff;
  if (sum.state === 'not-compared') {
    const when = { comparisonOff, nowUs: atUs };
    const next = isDue(sum, when) ? 'Run `earshot reconcile` to compare now.' : null;
    return evaluation('ok', notComparedText(sum, when), next);
  }
  const { expected, missing, recovered, late } = sum;
  // Hours of several subscriptions have no sum.
  const unknownHours = Math.max(...coverage.map((one) => one.unknownHours));
  const counts = [
    missing === 0 ? 'none missing' : `${countText(missing)} missing`,
    ...(recovered === 0 ? [] : [`${countText(recovered)} recovered`]),
    ...(late === 0 ? [] : [`${countText(late)} late`]),
  ];
  const open = counted(unknownHours, 'hour');
  const hours = unknownHours === 0 ? 'all due hours compared' : `${open} not compared`;
  const found = `${counted(expected, 'event')} expected: ${counts.join(', ')}`;
  return ok([`7 days, ${hours}; ${found}`, ...uncomparedText(facts)].join('; '));
};

/** Describes what the counts leave out. */
function uncomparedText({ coverage, comparisonOff, receiver }: Known): string[] {
  const names = coverage.flatMap((one) => (one.state === 'not-compared' ? [one.subscription] : []));
  const isOff = receiver !== null && comparisonOff !== null;
  return [
    ...(names.length === 0 ? [] : [`not compared yet: ${listed(names)}`]),
    ...(isOff ? [`automatic comparison is off: ${comparisonOff.replace(/\.$/, '')}`] : []),
  ];
}

/** Tolerated lag of a reader; of fetching records, because each takes a request at a limited rate. */
const lagMaxUs = { record: 2 * dayUs, other: 15 * minuteUs };

const readers = ({ readers, summaries, atUs }: Known): Evaluation => {
  const shown = readers.filter(
    ({ of }) => of !== 'sink' && !(of === 'summaries' && summaries?.mode === 'off'),
  );
  if (shown.length === 0) return ok('none');
  const lagText = ({ name, behind }: ReaderStatus) =>
    `lag of ${name}: ${counted(behind, 'notification')}`;
  // A reader of `earshot tail` reads only while a user runs it.
  const stuck = shown.find(({ of, unreadSinceUs }) => {
    const maxUs = of === 'records' ? lagMaxUs.record : lagMaxUs.other;
    return of !== 'tail' && atUs - (unreadSinceUs ?? atUs) > maxUs;
  });
  if (stuck !== undefined) {
    return evaluation(
      'warning',
      `The ${lagText(stuck)}, the oldest received ${agoText(atUs - (stuck.unreadSinceUs ?? atUs))}.`,
      'No action is needed while the lag decreases. Otherwise check the log of the receiver.',
    );
  }
  const current = shown.filter(({ behind }) => behind === 0).map(({ name }) => name);
  const lagging = shown.filter(({ behind }) => behind > 0).map(lagText);
  return ok(
    [
      ...(current.length === 0 ? [] : [`${listed(current)} up to date`]),
      ...lagging.slice(0, 3),
    ].join('; '),
  );
};

const sinks = ({ sinks, rejectedConfig = null, situation }: Known): Evaluation => {
  const config = { fault: null, rejected: rejectedConfig };
  const own = evaluate([sinkConfigCheck], config, { situation, fine: ok('') });
  const problem = worstOf([...sinks.map((one) => one.evaluation), own].filter(isProblem));
  if (problem !== undefined) return problem;
  if (sinks.length === 0) return ok('none configured');
  const waiting = sinks.reduce((sum, one) => sum + one.waiting, 0);
  const queue = waiting === 0 ? 'queue empty' : `${countText(waiting)} queued`;
  return ok(`${listed(sinks.map(({ name }) => name))}: ${queue}`);
};

const summaries = ({ summaries, atUs, rejectedConfig = null }: Known): Evaluation => {
  if (summaries === null && rejectedConfig !== null) {
    return ok('unknown while earshot.config.ts is rejected');
  }
  if (summaries === null || (summaries.mode === 'off' && summaries.waiting === 0)) return ok('off');
  const { waiting, dueAtUs, requests, tokens, refusedAnswer } = summaries;
  if (refusedAnswer !== null) {
    const { cause, nextStep } = refusalText(refusedAnswer);
    return evaluation('warning', cause, nextStep);
  }
  const since =
    dueAtUs === null || dueAtUs >= atUs ? '' : `, overdue for ${lengthText(atUs - dueAtUs)}`;
  const count = waiting === 0 ? 'none waiting' : `${countText(waiting)} waiting${since}`;
  return ok(`${count}; ${counted(requests, 'request')} and ${counted(tokens, 'token')} in 24 h`);
};

const disk = ({ disk, situation }: Known) => evaluateDisk(disk, situation);

const backup = ({ backups, atUs, situation }: Known): Evaluation => {
  if (backups === null) return ok('unknown');
  const { made, failed, everyHours } = backups;
  const every = everyHours === null ? '' : `, every ${everyHours} h`;
  const hasFailed = failed !== null && failed.endedAtUs > (made?.endedAtUs ?? 0);
  const failure = hasFailed ? '; the last attempt failed' : '';
  const size = made?.bytes == null ? '' : `, ${sizeText(made.bytes)}`;
  const none = everyHours === null ? 'none made yet' : 'none yet';
  const age = made === null ? none : `${lengthText(atUs - made.startedAtUs)} old`;
  const fine = ok(`${age}${size}${every}${failure}`);
  return evaluate([backupCheck], backups, { situation, fine });
};

const alerts = ({ alerts, receiver }: Known): Evaluation => {
  const worst = worstOf(alerts);
  if (worst === undefined) {
    const only = receiver === null ? ', but only a running receiver raises alerts' : '';
    return ok(`no active alerts${only}`);
  }
  const names = alerts.map(({ kind, subject }) => (subject === '' ? kind : `${kind} (${subject})`));
  const text = `${alerts.length} active: ${listed(names)}`;
  return evaluation(worst.level, text, 'Run `earshot alerts` for details.');
};

const evaluators: Record<StatusPart, (known: Known) => Evaluation> = {
  ...{ receiver, log, receivers, subscriptions, certificate, coverage, readers, sinks },
  ...{ summaries, disk, backup, alerts },
};

/** Alerts that only a running receiver can find, and the part that shows them. */
const foundByReceiver: Readonly<Partial<Record<AlertKind, StatusPart>>> = {
  ...{ intake: 'receiver', receiver: 'receivers', database: 'receivers' },
};

/** Evaluates the facts. The part `receivers` exists only with a shared log. */
export function evaluateStatus(facts: StatusFacts): Status {
  const { atUs, alerts: active, receiver } = facts;
  const situation = { nowUs: atUs, upSinceUs: receiver?.startedAtUs ?? 0, alerts: active };
  const status = {
    ...facts,
    subscriptions: facts.subscriptions.map((one) => ({
      ...one,
      evaluation: evaluateSubscription(one, situation),
    })),
    sinks: facts.sinks.map((one) => ({ ...one, evaluation: evaluateSink(one, situation) })),
  };
  const parts = statusParts
    .filter((part) => part !== 'receivers' || facts.receivers !== null)
    .map((part): PartStatus => {
      const failure = facts.failures.find((one) => one.part === part);
      if (failure !== undefined) {
        const text = `The state is unknown: ${failure.reason}`;
        return { part, ...evaluation('unknown', text, 'For details, run `earshot doctor`.') };
      }
      const own = evaluators[part]({ ...status, situation });
      const found = active.filter(({ kind }) => foundByReceiver[kind] === part);
      return { part, ...(worstOf([own, ...found].filter(isProblem)) ?? own) };
    });
  return { ...status, parts };
}
