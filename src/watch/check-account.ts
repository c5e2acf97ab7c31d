/** Checks a subscription at the catalogue: that it isRunning, its lifetime there, and its comparison. */
import type { Registration } from '../domain/account.ts';
import {
  comparisonHorizonUs,
  type Definition,
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

/** A change of ours takes seconds, and maintenance has its round every six hours. */
const brieflyUs = 600_000_000;

const maintenanceUs = 7 * 3_600_000_000;

/** After a start it has its first round within a minute or two, and repeats it soon when it failed. */
const firstRoundsUs = 1_800_000_000;

/** An alert begins so long ahead, is critical so long ahead, and is over when a day more is left. */
export const pauseAhead = { warningUs: 14 * dayUs, criticalUs: 3 * dayUs };

export const cancelAhead = { warningUs: 30 * dayUs, criticalUs: 7 * dayUs };

const resolveMarginUs = dayUs;

/** How long something has been so, as far as is known; 0 when it is not so. */
export type ConditionAge = (what: string, isSo: boolean) => number;

/** What is paused by the user's own command, or wish, is as it should be. */
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
      ? `It was first seen paused at ${momentText(pausedSeenAtUs)}.`
      : subscriptionId === null
        ? 'There is none at the catalogue that we know of.'
        : 'A change of it was cut short.';
  return found({
    severity: 'critical',
    cause: `The subscription ${name} does not run, though it should: nothing is pushed.`,
    evidence: heldBy === 'person' ? [seen, 'A person changed it at the catalogue.'] : [seen],
    nextStep: `Run \`earshot register\` to make it run${resumesItself ? '; maintenance has tried, and `earshot maintain` says why it could not' : ''}.`,
  });
}

/** What the catalogue will do by itself (specification, Limits). Over when it has more time again. */
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
          evidence: 'It pauses what nothing was delivered to for 60 days.',
          nextStep: maintenance
            ? `Nothing, if so little is to be expected: maintenance resumes it then. Else look at its filter with \`earshot subscriptions show ${name}\`.`
            : `Run \`earshot maintain\` when it is paused, which resumes it; or look at its filter with \`earshot subscriptions show ${name}\`.`,
        })
      : checkOf('auto-pause', name, situation).fine,
    ahead('cancellation', known.cancelsAtUs, cancelAhead, {
      cause: (when) => `The catalogue will delete the subscription ${name} ${when}.`,
      evidence: 'It deletes what nothing was notified to for 365 days.',
      nextStep: `See with \`earshot subscriptions show ${name}\` whether its filter still matches anything, and change or remove it.`,
    }),
  ];

  function ahead(
    kind: 'auto-pause' | 'cancellation',
    atUs: number,
    limits: { warningUs: number; criticalUs: number },
    words: { cause: (when: string) => string; evidence: string; nextStep: string },
  ): CheckResult {
    const leftUs = atUs - nowUs;
    const { alert, fine, found } = checkOf(kind, name, situation);
    if (leftUs > limits.warningUs + (alert === undefined ? 0 : resolveMarginUs)) return fine;
    const when = leftUs > 0 ? `in ${lengthText(leftUs)}` : 'any time now';
    const last =
      lastDeliveryAtUs === null
        ? 'No delivery to it is known.'
        : `The last delivery to it came at ${momentText(lastDeliveryAtUs)}.`;
    return found({
      severity: leftUs < limits.criticalUs ? 'critical' : 'warning',
      cause: words.cause(when),
      evidence: [last, words.evidence],
      nextStep: words.nextStep,
    });
  }
}

/** Age of the oldest hours that are checked: those that are compared automatically, without the last day. */
const checkedBackUs = comparisonHorizonUs - dayUs;

/** So much later, and with earshot up all the while, it should have been; it is over when less is open. */
const unknownUs = 6 * hourUs;

const unknownResolveUs = 2 * hourUs;

/** The last sign of life is written each minute. */
const signOfLifeUs = hourUs / 6;

/** A person who only checks, and then fetches, needs no alert. */
const missingUs = hourUs;

/** Over when nothing is missing any more. Without comparisons it cannot be checked. */
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
  const count = missing.reduce((sum, hour) => sum + hour.missing, 0);
  const starts = missing.map((hour) => hour.hourUs);
  const [fromUs, toUs] = [Math.min(...starts), Math.max(...starts) + hourUs];
  return found({
    severity: 'warning',
    cause: `${countText(count)} events of the subscription ${name} are not in the log.`,
    evidence: [`They are of ${momentText(fromUs)} to ${momentText(toUs)}.`],
    nextStep: `Run \`earshot reconcile --since ${isoText(fromUs)} --until ${isoText(toUs)} --subscription ${name}\` to fetch them.`,
  });
}

/** An hour that just cannot be compared does not count while earshot itself has only begun to catch up. */
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
    cause: `It is not known whether events of the subscription ${name} are missing: ${countText(open.length)} hours have not been compared with the catalogue.`,
    evidence: [
      `The oldest of them began at ${momentText(oldestUs)}, ${lengthText(nowUs - oldestUs)} ago.`,
      `earshot has been up for ${lengthText(nowUs - up.fromUs)}, and compares an hour when it ended ${lengthText(settlingUs)} ago.`,
    ],
    nextStep: `Run \`earshot reconcile --since ${isoText(oldestUs)} --until ${isoText(nowUs - (nowUs % hourUs))} --subscription ${name}\` to see what stands in the way.`,
  });
}

/** Hours that ended by `untilUs` and of which an event has not been compared; oldest first. */
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

/** To the minute, as commands take it. */
function isoText(us: number): string {
  return `${momentText(us).slice(0, 16).replace(' ', 'T')}Z`;
}
