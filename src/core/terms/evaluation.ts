/** The evaluation of a thing: terminal, JSON, API, page, metrics, status, doctor and alerts all show this one. */

import { z } from 'zod';
import { AppError, type ErrorCode } from './app-error.ts';
import type { alertSchema } from './read-models.ts';

/** From the most to the least urgent. `unknown`: the state could not be read. */
export const levels = ['critical', 'warning', 'unknown', 'ok'] as const;
export type Level = (typeof levels)[number];

export const evaluationSchema = z.object({
  level: z.enum(levels).describe('`unknown`: the state could not be read.'),
  text: z.string().describe('One sentence, or a short phrase if the level is `ok`.'),
  evidence: z.array(z.string()).readonly().describe('Facts behind the text, one line each.'),
  nextStep: z
    .string()
    .nullable()
    .describe('What to do next, usually with a command; null if no step is needed.'),
});

export type Evaluation = z.infer<typeof evaluationSchema>;

/** Returns an evaluation. Evidence that does not apply is false. */
export function evaluation(
  level: Level,
  text: string,
  nextStep: string | null = null,
  ...evidence: readonly (string | false)[]
): Evaluation {
  return { level, text, nextStep, evidence: evidence.filter((line) => line !== false) };
}

export const ok = (text: string): Evaluation => evaluation('ok', text);

export const isProblem = ({ level }: Pick<Evaluation, 'level'>): boolean => level !== 'ok';

export interface Finding extends Evaluation {
  /** Subject of the check, in one to four words. */
  check: string;
  /** Code of the error that a check ended with; `configuration` if the settings cause it. */
  code?: ErrorCode;
}

/** Runs a check. Never throws for what it finds. */
export type FindingCheck = () => Promise<Finding[]>;

/** Returns a finding. */
export function finding(check: string, ...args: Parameters<typeof evaluation>): Finding {
  return { check, ...evaluation(...args) };
}

/**
 * Converts an error to a critical finding. `nextStep` is the default for errors without advice. Of an error that is not
 * an `AppError`, only the type is reported: its text may contain anything.
 */
export function failedFinding(check: string, error: unknown, nextStep: string): Finding {
  if (!(error instanceof AppError) || error.code === 'internal') {
    const kind = error instanceof Error ? error.name : typeof error;
    return finding(
      check,
      'critical',
      `Internal error in this check (${kind}).`,
      'Please report it.',
    );
  }
  const { message, advice = nextStep, details, code } = error;
  return { ...finding(check, 'critical', message, advice, ...details), code };
}

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
