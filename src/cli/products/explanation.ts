/** How a query is answered, in lines for people. */
import { printable } from '../../domain/printable.ts';
import type { QueryExplanation } from '../../domain/products.ts';

const width = 12;

/** One part after the other, each under its name. */
export function explanationLines(explanation: QueryExplanation): string[] {
  const { narrowedBy, byColumns, byRecords, plan } = explanation;
  return [
    ...part('narrowed by', [narrowedBy ?? 'nothing: all are looked at in their order']),
    ...part('by columns', byColumns),
    ...part('by records', byRecords),
    ...part('plan', plan),
  ];
}

function part(name: string, texts: readonly string[]): string[] {
  return texts.map((text, i) => `${(i === 0 ? name : '').padEnd(width)}${printable(text)}`);
}
