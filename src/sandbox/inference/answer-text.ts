/** The text that the inference service answers: a few facts of the request, repeated word by word. */
import { type LabelledFact, labelledFacts } from './labelled-facts.ts';

const neutralText = 'There is nothing to tell about this request.';
const sentencesMax = 3;
// Longer facts are lists that would make a poor sentence.
const factCharactersMax = 240;
/** A date as people write it, at the beginning of a fact. */
const date = /^\d{1,2} [A-Z][a-z]+ \d{4}\b/;

/** Facts with a sentence of their own, in the order in which they are told. */
const phrases: readonly {
  readonly label: RegExp;
  readonly text?: RegExp;
  readonly sentence: (text: string) => string;
}[] = [
  { label: /^deletion date$/, text: date, sentence: (text) => `It was deleted on ${text}.` },
  { label: /^(sens|acqui)/, text: date, sentence: (text) => `It was sensed on ${text}.` },
  { label: /^valid from$/, text: date, sentence: (text) => `It is valid from ${text} on.` },
  { label: /^covers from$/, text: date, sentence: (text) => `It covers the time from ${text} on.` },
  { label: /^(place|countries|seas)$/, sentence: (text) => `It covers ${text}.` },
  { label: /^(countries|seas)\b/, sentence: (text) => `They cover ${text}.` },
  { label: /^products by collection$/, sentence: (text) => `The collections are ${text}.` },
  { label: /^cloud cover$/, sentence: (text) => `The cloud cover is ${text}.` },
  { label: /^publi/, text: date, sentence: (text) => `It was published on ${text}.` },
];

/**
 * Makes up to three sentences of the facts in the user's message, with no number, name or place that they do
 * not have; a neutral one where there are no facts. The same message brings the same text.
 */
export function answerText(userText: string): string {
  const facts = labelledFacts(userText)
    .map(({ label, text }) => ({ label: label.toLowerCase(), text: text.replace(/[.\s]+$/, '') }))
    .filter(({ text }) => text !== '' && text.length <= factCharactersMax);
  if (facts.length === 0) return neutralText;
  const opening = productSentence(facts) ?? digestSentence(facts);
  const told = phrases.flatMap(({ label, text, sentence }) => {
    const fact = facts.find((one) => label.test(one.label) && text?.test(one.text) !== false);
    return fact === undefined ? [] : [sentence(fact.text)];
  });
  const sentences = opening === null ? told : [opening, ...told];
  // Facts of another kind than expected.
  if (sentences.length === 0) sentences.push(...facts.map(plainSentence));
  return sentences.slice(0, sentencesMax).join(' ');
}

/** What a product is; null where the facts do not tell. */
function productSentence(facts: readonly LabelledFact[]): string | null {
  const [satellite, content] = [factOf(facts, 'satellite'), factOf(facts, 'content')];
  const subject = `This ${factOf(facts, 'subject') ?? 'product'}`;
  if (content !== null) {
    return `${subject}${satellite === null ? '' : ` of ${satellite}`} holds ${content}.`;
  }
  if (satellite !== null) return `${subject} is of ${satellite}.`;
  const product = factOf(facts, 'product');
  return product === null ? null : `The product is ${product}.`;
}

/** How much arrived and when; null where the facts do not tell both. */
function digestSentence(facts: readonly LabelledFact[]): string | null {
  const [products, span] = [factOf(facts, 'products'), factOf(facts, 'time of receipt')];
  const [from, until] = span?.split(' to ') ?? [];
  if (products === null || from === undefined || until === undefined) return null;
  return `Between ${from} and ${until}, ${products} arrived.`;
}

function plainSentence({ label, text }: LabelledFact): string {
  return `The ${label} ${/[^s]s$/.test(label) ? 'are' : 'is'} ${text}.`;
}

function factOf(facts: readonly LabelledFact[], label: string): string | null {
  return facts.find((fact) => fact.label === label)?.text ?? null;
}
