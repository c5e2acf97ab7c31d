/** Finds the labelled facts in a user message: a JSON object between <facts> and </facts>. */

export interface LabelledFact {
  readonly label: string;
  readonly text: string;
}

const factsMax = 500;

/**
 * Reads the facts, in their order; none where there is no such object. They may stand under `facts` or at the
 * top, as an object of texts or as an array of `{label, text}`; what is of another form is left out.
 */
export function labelledFacts(message: string): readonly LabelledFact[] {
  const start = message.indexOf('<facts>');
  const end = message.indexOf('</facts>', start);
  if (start === -1 || end === -1) return [];
  try {
    const value: unknown = JSON.parse(message.slice(start + '<facts>'.length, end));
    const facts = Array.isArray(value) ? value : propertyOf(value, 'facts');
    return factsOf(facts ?? value).slice(0, factsMax);
  } catch {
    return [];
  }
}

function factsOf(facts: unknown): LabelledFact[] {
  const pairs = Array.isArray(facts)
    ? facts.map((one) => [propertyOf(one, 'label'), propertyOf(one, 'text')])
    : Object.entries(Object(facts));
  return pairs.flatMap(([label, text]) => {
    if (typeof label !== 'string' || typeof text !== 'string') return [];
    return label.trim() === '' || text.trim() === '' ? [] : [{ label, text: text.trim() }];
  });
}

function propertyOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
