/** What the span of an auxiliary file means. */
import type { ProductFacts } from './product-facts.ts';

/** Measurements are of their time; orbits, parameters and forecasts are valid for theirs. */
export function isOfItsTime({ content }: Pick<ProductFacts, 'content'>): boolean {
  return content?.startsWith('raw data') ?? false;
}
