/** Warns about collections that nobody has heard of. */
import type { ComparisonNode, InNode } from '../../domain/filter-tree.ts';
import { publishedCollections } from '../attribute-names.ts';
import { nearestName } from '../hints/nearest-name.ts';
import { named } from '../hints/unexpected.ts';
import type { Findings } from './findings.ts';

export function checkCollections(findings: Findings, node: ComparisonNode | InNode): void {
  if (node.field !== 'Collection/Name') return;
  const literals = node.node === 'in' ? node.literals : [node.literal];
  for (const literal of literals) {
    if (literal.type !== 'text' || publishedCollections.includes(literal.value)) continue;
    const nearest = nearestName(spelledOut(literal.value), publishedCollections);
    const message = `No collection ${named(literal.value)} is known here. It may be new.`;
    const hint = nearest === null ? {} : { hint: `Did you mean '${nearest}'?` };
    const span = findings.spanOfObject(literal);
    findings.warn(span, { code: 'unknown-collection', message, ...hint });
  }
}

/** `S2` and `s-5p` as the catalogue writes them; any other name as it is. */
function spelledOut(name: string): string {
  return name.replace(/^s-?(?=\dp?$)/i, 'SENTINEL-');
}
