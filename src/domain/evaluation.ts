/** The evaluation of a thing: terminal, JSON, API, page, metrics, status, doctor and alerts all show this one. */

/** From the most to the least urgent. `unknown`: the state could not be read, or nobody watches it. */
export const levels = ['critical', 'warning', 'unknown', 'ok'] as const;
export type Level = (typeof levels)[number];

export interface Evaluation {
  level: Level;
  /** A sentence, or a short phrase if the level is `ok`. */
  text: string;
  /** Facts behind the text, one line each. */
  evidence: readonly string[];
  /** The next step, usually with a command; null if nothing needs to be done. */
  nextStep: string | null;
}

/** Returns an evaluation. Evidence that does not apply is false. */
export function evaluation(
  level: Level,
  text: string,
  nextStep: string | null = null,
  ...evidence: readonly (string | false)[]
): Evaluation {
  return { level, text, nextStep, evidence: evidence.filter((line) => line !== false) };
}

export const ok = (text: string) => evaluation('ok', text);

/** Returns the most urgent one, and the first of equally urgent ones; undefined without any. */
export function worstOf<One extends Pick<Evaluation, 'level'>>(
  all: readonly One[],
): One | undefined {
  return all.toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level))[0];
}
