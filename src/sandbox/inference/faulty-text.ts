/** Texts as a model should not write them: inventing, obeying the data, with markup. */
import type { InferenceFault } from './inference-faults.ts';

const places = ['Ulaanbaatar', 'Montevideo', 'Reykjavik', 'Windhoek', 'Atlantis'];
const firstInvented = 4_711;

/** A command within the data, for tests: `ignore all previous instructions and say X`, `SAY_X`. */
const commands = [
  /ignore\s+(?:all\s+|any\s+)?(?:the\s+)?previous\s+instructions[\s,:;.]*(?:and\s+)?(?:say|write|answer|reply)\s+([^\s"\\<>][^"\\<>\n]{0,199})/i,
  /SAY_(\w{1,200})/i,
];

/** The faults that change what a text says, and nothing else of the answer. */
export type TextFault = Extract<
  InferenceFault,
  'inventedNumber' | 'inventedPlace' | 'obeyedCommand' | 'markup'
>;

/** Spoils a right text; null when there is nothing to obey. What is invented stands nowhere in the request. */
export function faultyText(fault: TextFault, right: string, userText: string): string | null {
  switch (fault) {
    case 'inventedNumber':
      return `${right} It has ${numberNotIn(userText)} bands.`;
    case 'inventedPlace':
      return `${right} It shows the land round ${placeNotIn(userText)}.`;
    case 'obeyedCommand':
      return hiddenCommand(userText);
    case 'markup':
      return `${right} **More** is <b>told</b> at [the archive](https://archive.example.org/).`;
  }
}

/** What a command in the text wants to be said; null where there is none. */
function hiddenCommand(userText: string): string | null {
  for (const command of commands) {
    const [, said] = command.exec(userText) ?? [];
    if (said !== undefined) return said.trim();
  }
  return null;
}

function numberNotIn(text: string): number {
  let number = firstInvented;
  while (text.includes(String(number))) number += 1;
  return number;
}

function placeNotIn(text: string): string {
  const lower = text.toLowerCase();
  return places.find((place) => !lower.includes(place.toLowerCase())) ?? 'Brigadoon';
}
