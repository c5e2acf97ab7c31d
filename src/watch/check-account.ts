/** Judges the state of a subscription at the catalogue: that it runs, and for how long it will. */
import type { Registration } from '../domain/account.ts';
import { type Definition, horizonUs, hourUs, settlingUs } from '../domain/coverage.ts';
import {
  countText,
  coverageOf,
  dayUs,
  lastingAlert,
  lengthText,
  momentText,
  nothingWrong,
  runs,
  type Situation,
  unjudged,
  upForUs,
  type Verdict,
  type WatchWorld,
  wrong,
} from './situation.ts';

/** A change of ours takes seconds, and maintenance has its round every six hours. */
const brieflyUs = 600_000_000;

const maintenanceUs = 7 * 3_600_000_000;

/** After a start it has its first round within a minute or two, and repeats it soon when it failed. */
const firstRoundsUs = 1_800_000_000;

/** An alert begins so long ahead, is critical so long ahead, and is over when a day more is left. */
export const pauseAhead = { warningUs: 14 * dayUs, criticalUs: 3 * dayUs };

export const cancelAhead = { warningUs: 30 * dayUs, criticalUs: 7 * dayUs };

const overUs = dayUs;

/** How long something has been so, as far as is known; 0 when it is not so. */
export type LastsUs = (what: string, isSo: boolean) => number;

/** What is paused by the user's own command, or wish, is as it should be. */
export function judgeNotRunning(
  registration: Registration,
  situation: Situation,
  { maintenance, lastsUs }: { maintenance: boolean; lastsUs: LastsUs },
): Verdict {
  const { name, status, heldBy, pausedSeenAtUs, subscriptionId } = registration;
  const isWrong = status === 'running' && heldBy !== 'command' && !runs(registration);
  const knownUs = lastsUs(`not-running ${name}`, isWrong);
  if (!isWrong) return nothingWrong('not-running', name);
  const pausedUs = pausedSeenAtUs === null ? 0 : situation.nowUs - pausedSeenAtUs;
  const isLasting = lastingAlert(situation, 'not-running', name) !== undefined;
  const resumesItself = maintenance && heldBy === null;
  const isBrief = resumesItself
    ? Math.max(knownUs, pausedUs) < maintenanceUs || upForUs(situation) < firstRoundsUs
    : Math.max(knownUs, pausedUs) < brieflyUs;
  if (isBrief && !isLasting) return unjudged;
  const seen =
    pausedSeenAtUs !== null
      ? `It was first seen paused at ${momentText(pausedSeenAtUs)}.`
      : subscriptionId === null
        ? 'There is none at the catalogue that we know of.'
        : 'A change of it was cut short.';
  return wrong({
    kind: 'not-running',
    subject: name,
    severity: 'critical',
    cause: `The subscription ${name} does not run, though it should: nothing is pushed.`,
    evidence: heldBy === 'person' ? [seen, 'A person changed it at the catalogue.'] : [seen],
    nextStep: `Run \`earshot register\` to make it run${resumesItself ? '; maintenance has tried, and `earshot maintain` says why it could not' : ''}.`,
  });
}

/** What the catalogue will do by itself (specification, Limits). Over when it has more time again. */
export function judgeLifetimes(
  registration: Registration,
  situation: Situation,
  { maintenance, lifetimes }: Pick<WatchWorld, 'maintenance' | 'lifetimes'>,
): Verdict[] {
  const { name } = registration;
  const { nowUs, deliveredAtUs } = situation;
  const lastDeliveryAtUs = deliveredAtUs.get(name) ?? null;
  const known = lifetimes({ registration, lastDeliveryAtUs, nowUs });
  if (known === null) return [unjudged];
  const willPause = runs(registration);
  return [
    willPause
      ? ahead('auto-pause', known.pausesAtUs, pauseAhead, {
          cause: (when) => `The catalogue will pause the subscription ${name} ${when}.`,
          evidence: 'It pauses what nothing was delivered to for 60 days.',
          nextStep: maintenance
            ? `Nothing, if so little is to be expected: maintenance resumes it then. Else look at its filter with \`earshot subscriptions show ${name}\`.`
            : `Run \`earshot maintain\` when it is paused, which resumes it; or look at its filter with \`earshot subscriptions show ${name}\`.`,
        })
      : nothingWrong('auto-pause', name),
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
  ): Verdict {
    const leftUs = atUs - nowUs;
    const isLasting = lastingAlert(situation, kind, name) !== undefined;
    if (leftUs > limits.warningUs + (isLasting ? overUs : 0)) return nothingWrong(kind, name);
    const when = leftUs > 0 ? `in ${lengthText(leftUs)}` : 'any time now';
    const last =
      lastDeliveryAtUs === null
        ? 'No delivery to it is known.'
        : `The last delivery to it came at ${momentText(lastDeliveryAtUs)}.`;
    return wrong({
      kind,
      subject: name,
      severity: leftUs < limits.criticalUs ? 'critical' : 'warning',
      cause: words.cause(when),
      evidence: [last, words.evidence],
      nextStep: words.nextStep,
    });
  }
}

/** Hours are compared by themselves for so long back; the last day is left to chance. */
const judgedUs = horizonUs - dayUs;

/** So much later, and with earshot up all the while, it should have been; it is over when less is open. */
const unknownUs = 6 * hourUs;

const unknownOverUs = 2 * hourUs;

/** The last sign of life is written each minute. */
const signOfLifeUs = hourUs / 6;

/** A person who only checks, and then fetches, needs no alert. */
const missingUs = hourUs;

/** Over when nothing is missing any more. Without comparisons it cannot be judged. */
export function judgeMissing(
  { name }: Registration,
  situation: Situation,
  lastsUs: LastsUs,
): Verdict {
  const hours = coverageOf(situation, name);
  if (hours.length === 0) return unjudged;
  const missing = hours.filter(
    (hour) => hour.missing > 0 && hour.hourUs >= situation.nowUs - judgedUs,
  );
  const knownUs = lastsUs(`missing ${name}`, missing.length > 0);
  if (missing.length === 0) return nothingWrong('missing', name);
  const comparedUs = Math.min(...missing.map(({ comparedAtUs }) => comparedAtUs));
  const isBrief = Math.max(knownUs, situation.nowUs - comparedUs) < missingUs;
  if (isBrief && lastingAlert(situation, 'missing', name) === undefined) return unjudged;
  const count = missing.reduce((sum, hour) => sum + hour.missing, 0);
  const starts = missing.map((hour) => hour.hourUs);
  const [fromUs, toUs] = [Math.min(...starts), Math.max(...starts) + hourUs];
  return wrong({
    kind: 'missing',
    subject: name,
    severity: 'warning',
    cause: `${countText(count)} events of the subscription ${name} are not in the log.`,
    evidence: [`They are of ${momentText(fromUs)} to ${momentText(toUs)}.`],
    nextStep: `Run \`earshot reconcile --since ${isoText(fromUs)} --until ${isoText(toUs)} --subscription ${name}\` to fetch them.`,
  });
}

/** An hour that just cannot be compared does not count while earshot itself has only begun to catch up. */
export function judgeUnknown({ name }: Registration, situation: Situation): Verdict {
  const { nowUs, uptimes } = situation;
  const up = uptimes.at(-1);
  if (up === undefined || up.toUs < nowUs - signOfLifeUs) return unjudged;
  const isLasting = lastingAlert(situation, 'unknown', name) !== undefined;
  if (nowUs - up.fromUs < unknownUs && !isLasting) return unjudged;
  const allowedUs = isLasting ? unknownOverUs : unknownUs;
  const open = unknownHours(name, situation, nowUs - settlingUs - allowedUs);
  const [oldestUs] = open;
  if (oldestUs === undefined) return nothingWrong('unknown', name);
  return wrong({
    kind: 'unknown',
    subject: name,
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
  const sinceUs = Math.max(first.fromUs, situation.nowUs - judgedUs, situation.wholeSinceUs);
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
