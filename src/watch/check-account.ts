/** Checks a subscription in the catalogue: whether it runs, its lifetime, and its comparison. */
import type { Registration } from '../domain/account.ts';
import type { AlertFinding } from '../domain/alerts.ts';
import {
  comparisonHorizonUs,
  type Definition,
  type HourCoverage,
  hourUs,
  settlingUs,
} from '../domain/completeness.ts';
import {
  type CheckResult,
  checkOf,
  countText,
  coverageOf,
  dayUs,
  isRunning,
  lengthText,
  momentText,
  notChecked,
  type Situation,
  upForUs,
  type WatchDeps,
} from './situation.ts';

/** Duration of a change by earshot (seconds), with margin. */
const brieflyUs = 600_000_000;

/** Interval of maintenance (6 h), with margin. */
const maintenanceUs = 7 * 3_600_000_000;

/** After a start, the first maintenance round runs within two minutes and is retried soon after a failure. */
const firstRoundsUs = 1_800_000_000;

/**
 * Time before the event at which the alert is raised, and at which it becomes critical. The alert is resolved when
 * `resolveMarginUs` more than `warningUs` is left.
 */
export const pauseAhead = { warningUs: 14 * dayUs, criticalUs: 3 * dayUs };

export const cancelAhead = { warningUs: 30 * dayUs, criticalUs: 7 * dayUs };

const resolveMarginUs = dayUs;

/** Returns how long a condition has been true, as far as is known; 0 when it is false. */
export type ConditionAge = (condition: string, isTrue: boolean) => number;

/** Checks that a subscription runs, unless it was paused by a command of the user or in the desired state. */
export function checkNotRunning(
  registration: Registration,
  situation: Situation,
  { maintenance, conditionAgeUs }: { maintenance: boolean; conditionAgeUs: ConditionAge },
): CheckResult {
  const { name, status, heldBy, pausedSeenAtUs, subscriptionId } = registration;
  const { alert, fine, found } = checkOf('not-running', name, situation);
  const isWrong = status === 'running' && heldBy !== 'command' && !isRunning(registration);
  const knownUs = conditionAgeUs(`not-running ${name}`, isWrong);
  if (!isWrong) return fine;
  const pausedUs = pausedSeenAtUs === null ? 0 : situation.nowUs - pausedSeenAtUs;
  const resumesItself = maintenance && heldBy === null;
  const isBrief = resumesItself
    ? Math.max(knownUs, pausedUs) < maintenanceUs || upForUs(situation) < firstRoundsUs
    : Math.max(knownUs, pausedUs) < brieflyUs;
  if (isBrief && alert === undefined) return notChecked;
  const seen =
    pausedSeenAtUs !== null
      ? `The pause was first seen at ${momentText(pausedSeenAtUs)}.`
      : subscriptionId === null
        ? 'The catalogue has no subscription of this name.'
        : 'A change of the subscription was interrupted.';
  return found({
    severity: 'critical',
    cause: `The subscription ${name} is not running, although it should run: no notifications arrive.`,
    evidence:
      heldBy === 'person' ? [seen, 'A person changed the subscription in the catalogue.'] : [seen],
    nextStep: `Run \`earshot register\` to make the subscription run${resumesItself ? '. To see why maintenance failed, run `earshot maintain`' : ''}.`,
  });
}

/**
 * Checks when the catalogue will pause or delete a subscription (specification, Limits). Resolved when more time is
 * left again.
 */
export function checkLifetimes(
  registration: Registration,
  situation: Situation,
  { maintenance, lifetimes }: Pick<WatchDeps, 'maintenance' | 'lifetimes'>,
): CheckResult[] {
  const { name } = registration;
  const { nowUs, deliveredAtUs } = situation;
  const lastDeliveryAtUs = deliveredAtUs.get(name) ?? null;
  const known = lifetimes({ registration, lastDeliveryAtUs, nowUs });
  if (known === null) return [notChecked];
  const willPause = isRunning(registration);
  return [
    willPause
      ? ahead('auto-pause', known.pausesAtUs, pauseAhead, {
          cause: (when) => `The catalogue will pause the subscription ${name} ${when}.`,
          evidence: 'The catalogue pauses a subscription after 60 days without a delivery.',
          nextStep: maintenance
            ? `No action is needed if few events are expected: maintenance resumes the subscription automatically. Otherwise check the filter with \`earshot subscriptions show ${name}\`.`
            : `Check the filter with \`earshot subscriptions show ${name}\`. After the pause, run \`earshot maintain\` to resume the subscription.`,
        })
      : checkOf('auto-pause', name, situation).fine,
    ahead('cancellation', known.cancelsAtUs, cancelAhead, {
      cause: (when) => `The catalogue will delete the subscription ${name} ${when}.`,
      evidence: 'The catalogue deletes a subscription after 365 days without a notification.',
      nextStep: `Check the filter with \`earshot subscriptions show ${name}\`. If the filter no longer matches products, change or remove the subscription.`,
    }),
  ];

  function ahead(
    kind: 'auto-pause' | 'cancellation',
    atUs: number,
    limits: { warningUs: number; criticalUs: number },
    texts: { cause: (when: string) => string; evidence: string; nextStep: string },
  ): CheckResult {
    const leftUs = atUs - nowUs;
    const { alert, fine, found } = checkOf(kind, name, situation);
    if (leftUs > limits.warningUs + (alert === undefined ? 0 : resolveMarginUs)) return fine;
    const when = leftUs > 0 ? `in ${lengthText(leftUs)}` : 'any time now';
    const last =
      lastDeliveryAtUs === null
        ? 'No delivery of this subscription is known.'
        : `The last delivery of this subscription was at ${momentText(lastDeliveryAtUs)}.`;
    return found({
      severity: leftUs < limits.criticalUs ? 'critical' : 'warning',
      cause: texts.cause(when),
      evidence: [last, texts.evidence],
      nextStep: texts.nextStep,
    });
  }
}

/** Maximum age of checked hours: that of automatic comparison, minus a day. */
const checkedBackUs = comparisonHorizonUs - dayUs;

/**
 * Delay of a comparison, with earshot running all the time, that raises the alert, and delay below which it is
 * resolved.
 */
const unknownUs = 6 * hourUs;

const unknownResolveUs = 2 * hourUs;

/** Maximum age of the last heartbeat, which is written every minute. */
const signOfLifeUs = hourUs / 6;

/** No alert for a user who first checks and then fetches. */
const missingUs = hourUs;

/** Checks for missing events. Resolved when none is missing. Not checked without comparisons. */
export function checkMissing(
  { name }: Registration,
  situation: Situation,
  conditionAgeUs: ConditionAge,
): CheckResult {
  const { alert, fine, found } = checkOf('missing', name, situation);
  const hours = coverageOf(situation, name);
  if (hours.length === 0) return notChecked;
  const missing = hours.filter(
    (hour) => hour.missing > 0 && hour.hourUs >= situation.nowUs - checkedBackUs,
  );
  const knownUs = conditionAgeUs(`missing ${name}`, missing.length > 0);
  if (missing.length === 0) return fine;
  const comparedUs = Math.min(...missing.map(({ comparedAtUs }) => comparedAtUs));
  const isBrief = Math.max(knownUs, situation.nowUs - comparedUs) < missingUs;
  if (isBrief && alert === undefined) return notChecked;
  return found(missingFinding(name, missing));
}

/** Describes hours with missing events, of which there is at least one. */
export function missingFinding(
  name: string,
  hours: readonly Pick<HourCoverage, 'hourUs' | 'missing'>[],
): Omit<AlertFinding, 'kind' | 'subject'> {
  const count = hours.reduce((sum, hour) => sum + hour.missing, 0);
  const starts = hours.map((hour) => hour.hourUs);
  const [fromUs, toUs] = [Math.min(...starts), Math.max(...starts) + hourUs];
  return {
    severity: 'warning',
    cause: `${countText(count)} events of the subscription ${name} are missing from the log.`,
    evidence: [`They occurred between ${momentText(fromUs)} and ${momentText(toUs)}.`],
    nextStep: `Run \`earshot reconcile --since ${isoText(fromUs)} --until ${isoText(toUs)} --subscription ${name}\` to fetch them.`,
  };
}

/** Checks for hours that were not compared in time, unless earshot has only started recently and is catching up. */
export function checkUnknown({ name }: Registration, situation: Situation): CheckResult {
  const { nowUs, uptimes } = situation;
  const up = uptimes.at(-1);
  if (up === undefined || up.toUs < nowUs - signOfLifeUs) return notChecked;
  const { alert, fine, found } = checkOf('unknown', name, situation);
  if (nowUs - up.fromUs < unknownUs && alert === undefined) return notChecked;
  const allowedUs = alert === undefined ? unknownUs : unknownResolveUs;
  const open = unknownHours(name, situation, nowUs - settlingUs - allowedUs);
  const [oldestUs] = open;
  if (oldestUs === undefined) return fine;
  return found({
    severity: 'warning',
    cause: `Events of the subscription ${name} may be missing: ${countText(open.length)} hours have not been compared with the catalogue.`,
    evidence: [
      `The oldest of these hours started at ${momentText(oldestUs)}, ${lengthText(nowUs - oldestUs)} ago.`,
      `earshot has been running for ${lengthText(nowUs - up.fromUs)}; an hour is normally compared ${lengthText(settlingUs)} after its end.`,
    ],
    nextStep: `Run \`earshot reconcile --since ${isoText(oldestUs)} --until ${isoText(nowUs - (nowUs % hourUs))} --subscription ${name}\` to compare these hours. If that fails, the command prints the reason.`,
  });
}

/** Returns hours that ended by `untilUs` and were not compared for all events, oldest first. */
function unknownHours(name: string, situation: Situation, untilUs: number): number[] {
  const definitions = situation.definitions.filter(({ subscription }) => subscription === name);
  const [first] = definitions;
  if (first === undefined) return [];
  const known = new Set(
    coverageOf(situation, name).map(({ hourUs: us, event }) => `${us} ${event}`),
  );
  const sinceUs = Math.max(
    first.fromUs,
    situation.nowUs - checkedBackUs,
    situation.unprunedSinceUs,
  );
  const open: number[] = [];
  for (let us = Math.ceil(sinceUs / hourUs) * hourUs; us + hourUs <= untilUs; us += hourUs) {
    const events = definitionAt(definitions, us)?.events ?? [];
    if (events.some((event) => !known.has(`${us} ${event}`))) open.push(us);
  }
  return open;
}

function definitionAt(definitions: readonly Definition[], us: number): Definition | undefined {
  return definitions.findLast(({ fromUs }) => fromUs <= us);
}

/** Formats a time in minutes, as accepted by commands. */
function isoText(us: number): string {
  return `${momentText(us).slice(0, 16).replace(' ', 'T')}Z`;
}
