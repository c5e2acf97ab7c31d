/** Judges whether a subscription that usually brings something brings nothing. */
import type { Registration } from '../../domain/administration.ts';
import { lengthText, momentText, rounded } from '../plain-figures.ts';
import { type LearnedRates, learnRates } from '../silence/learn-rates.ts';
import { type SilenceOdds, silenceOdds } from '../silence/silence-odds.ts';
import {
  arrivalsOf,
  coverageOf,
  lastingAlert,
  runs,
  type Situation,
  watchedSpans,
} from '../situation.ts';
import { nothingWrong, unjudged, type Verdict, wrong } from '../verdict.ts';

const kind = 'silence';

/**
 * A silence that lasts ends with the next push, or when the subscription is no longer to run; nothing else
 * resolves it, so that what was learned in between does not either.
 */
export function judgeSilence(registration: Registration, situation: Situation): Verdict {
  const { name, status, heldBy } = registration;
  const { nowUs } = situation;
  if (status === 'paused' || heldBy === 'command') return nothingWrong(kind, name);
  if (!runs(registration)) return unjudged;
  const lasting = lastingAlert(situation, kind, name);
  const arrivals = arrivalsOf(situation, name);
  const pushedSince = (us: number) => [...arrivals.values()].some(({ lastAtUs }) => lastAtUs > us);
  if (lasting !== undefined && pushedSince(lasting.raisedAtUs)) return nothingWrong(kind, name);
  const watched = watchedSpans(situation, name);
  const lostHours = coverageOf(situation, name)
    .filter(({ recovered, missing }) => recovered + missing > 0)
    .map(({ hourUs }) => hourUs);
  const learned = learnRates({ arrivals, watched, lostHours });
  if (learned === null) return unjudged;
  const silence = { fromUs: learned.lastPushAtUs, toUs: nowUs };
  const odds = silenceOdds(learned, watched, silence);
  if (odds === null) return unjudged;
  if (!odds.isAlarm && lasting === undefined) return nothingWrong(kind, name);
  return wrong(findingOf(name, learned, odds, nowUs));
}

function findingOf(
  name: string,
  { lastPushAtUs, longestSilence, watchedHours }: LearnedRates,
  { expected, odds }: SilenceOdds,
  nowUs: number,
) {
  const length = lengthText(nowUs - lastPushAtUs);
  return {
    kind,
    subject: name,
    severity: 'critical',
    cause: `The subscription ${name} has brought nothing for ${length}, which is unlikely to be chance.`,
    evidence: [
      `The last notification came at ${momentText(lastPushAtUs)}.`,
      `Some ${rounded(expected)} were to be expected since then; the longest silence before was worth ${rounded(longestSilence)}.`,
      `The chance of such a silence is ${oddsText(odds)}, learned from ${rounded(watchedHours / 24)} days of watching.`,
    ],
    nextStep: `Run \`earshot doctor\` to see whether the catalogue can reach this endpoint, and \`earshot subscriptions show ${name}\` to see whether it still runs.`,
  } as const;
}

function oddsText(odds: number): string {
  return odds < 1e-9 ? 'less than one in a thousand million' : `1 in ${Math.round(1 / odds)}`;
}
