/** Judges what the comparison with the catalogue left open: events that are missing, hours that are unknown. */
import type { Registration } from '../../domain/administration.ts';
import { type Definition, horizonUs, hourUs, settlingUs } from '../../domain/completeness.ts';
import { countText, dayUs, lengthText, momentText } from '../plain-figures.ts';
import { coverageOf, lastingAlert, type Situation } from '../situation.ts';
import { nothingWrong, unjudged, type Verdict, wrong } from '../verdict.ts';
import type { LastsUs } from './judge-registration.ts';

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
