/** What a judge says of one part of a status: that it is well, or what is wrong and what to do. */
import type { AlertFinding } from '../../domain/alerts.ts';
import type { PartStatus, StatusFacts } from '../../domain/status.ts';

export type Judgement = Omit<PartStatus, 'part'>;

/** Pure: the same facts, the same word. */
export type Judge = (facts: StatusFacts) => Judgement | Promise<Judgement>;

export const well = (text: string): Judgement => ({ level: 'well', text, nextStep: null });

export const unused = (text: string): Judgement => ({ level: 'unused', text, nextStep: null });

export const warning = (text: string, nextStep: string): Judgement => ({
  level: 'warning',
  text,
  nextStep,
});

export const critical = (text: string, nextStep: string): Judgement => ({
  level: 'critical',
  text,
  nextStep,
});

/** The worst of the findings, with the number of the others; null where there is none. */
export function worstOf(
  findings: readonly Pick<AlertFinding, 'severity' | 'cause' | 'nextStep'>[],
): Judgement | null {
  const [first, ...others] = findings.toSorted((a, b) => rank(b) - rank(a));
  if (first === undefined) return null;
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  return { level: first.severity, text: `${first.cause}${more}`, nextStep: first.nextStep };
}

const rank = ({ severity }: Pick<AlertFinding, 'severity'>) => (severity === 'critical' ? 1 : 0);

/** The watchdog looks while a receiver runs: then what it bears with for a while is no fault yet. */
export const isWatched = ({ receiver }: StatusFacts): boolean => receiver !== null;

/** What a list holds, cut after the third: `a, b, c and 4 more`. */
export function listed(items: readonly string[]): string {
  const shown = items.slice(0, 3).join(', ');
  return items.length > 3 ? `${shown} and ${items.length - 3} more` : shown;
}
