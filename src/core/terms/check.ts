/** Checks of things: a pure function returns the problem of a thing. Its evaluation and its alerts are the same. */

import type { z } from 'zod';
import { type Evaluation, evaluation, isProblem, levels } from './evaluation.ts';
import type { alertSchema } from './read-models.ts';

/** A problem that was reported to the user. */
export type Alert = Omit<z.infer<typeof alertSchema>, 'channels'>;

/** A problem of a thing, with its evaluation. */
export type AlertFinding = Omit<Alert, 'id' | 'raisedAtUs' | 'resolvedAtUs'>;

/** Formats for example: `sink-refused: bus`. */
export function alertTitle({ kind, subject }: Pick<Alert, 'kind' | 'subject'>): string {
  return subject === '' ? kind : `${kind}: ${subject}`;
}

/** A problem of a thing. */
export interface Problem extends Omit<AlertFinding, 'kind' | 'subject'> {
  /** Time for which the problem must exist before an alert is raised. */
  raiseAfterUs?: number;
  /** Time since which the problem is known to exist, if longer than it has been found. */
  sinceUs?: number;
}

/** Returns a problem. Evidence that does not apply is false. */
export function problem(
  level: Problem['level'],
  text: string,
  nextStep: string,
  ...evidence: readonly (string | false)[]
): Problem {
  return { ...evaluation(level, text, null, ...evidence), level, nextStep };
}

/** A problem, null without one, or `unchecked` when that is not known: then an active alert does not change. */
export type Result = Problem | null | 'unchecked';

/** Facts that each check may use. */
export interface Moment {
  nowUs: number;
  /** Time since which the receiver has run; `nowUs` when that is not known. */
  upSinceUs: number;
  /** Active alert of this kind and subject, to resolve it later than it was raised. */
  alert: Alert | undefined;
}

export interface Check<Thing> {
  kind: string;
  /** Time for which a problem must be gone before its alert is resolved. */
  resolveAfterUs: number;
  check: (thing: Thing, moment: Moment) => Result;
}

export function checkOf<Thing>(
  kind: string,
  check: Check<Thing>['check'],
  resolveAfterUs = 0,
): Check<Thing> {
  return { kind, check, resolveAfterUs };
}

/** The same for all things. */
export interface Situation extends Omit<Moment, 'alert'> {
  /** Active alerts. */
  alerts: readonly Alert[];
}

/** Situation of a command that knows no start of the receiver. */
export const situationAt = (nowUs: number, alerts: readonly Alert[] = []): Situation => ({
  ...{ nowUs, upSinceUs: nowUs, alerts },
});

/**
 * Evaluates a thing by all its checks; without a problem, it is `fine`. For a check that does not know the state now,
 * its active alert counts.
 */
export function evaluate<Thing>(
  checks: readonly Check<Thing>[],
  thing: Thing,
  { subject = '', situation, fine }: { subject?: string; situation: Situation; fine: Evaluation },
): Evaluation {
  const { alerts, ...moment } = situation;
  const found = checks.flatMap(({ kind, check }): Evaluation[] => {
    const alert = alerts.find((one) => one.kind === kind && one.subject === subject);
    const result = check(thing, { ...moment, alert });
    if (result === 'unchecked') return alert === undefined ? [] : [alert];
    return result === null ? [] : [result];
  });
  return worstOf(found) ?? fine;
}

/** Returns the evaluation, or active alerts of kinds that only a running receiver finds. */
export function withAlerts(
  own: Evaluation,
  kinds: readonly string[],
  { alerts }: Situation,
): Evaluation {
  const active = alerts.filter(({ kind }) => kinds.includes(kind));
  return worstOf([own, ...active].filter(isProblem)) ?? own;
}

/** Returns the most urgent evaluation, with the number of other problems; undefined without any. */
export function worstOf(all: readonly Evaluation[]): Evaluation | undefined {
  const [worst, ...others] = all.toSorted(
    (a, b) => levels.indexOf(a.level) - levels.indexOf(b.level),
  );
  if (worst === undefined) return undefined;
  const { level, text, evidence, nextStep } = worst;
  const more = others.filter(isProblem).length;
  return { level, text: more === 0 ? text : `${text} (and ${more} more)`, evidence, nextStep };
}
