/** The evaluation of a thing: terminal, JSON, API, page, metrics, status, doctor and alerts all show this one. */
import { z } from 'zod';

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
