/** Judges the state of a subscription at the catalogue: that it runs, and for how long it will. */
import type { Registration } from '../../domain/administration.ts';
import { dayUs, lengthText, momentText } from '../plain-figures.ts';
import { lastingAlert, runs, type Situation, upForUs } from '../situation.ts';
import { nothingWrong, unjudged, type Verdict, wrong } from '../verdict.ts';
import type { WatchWorld } from '../watch-world.ts';

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
