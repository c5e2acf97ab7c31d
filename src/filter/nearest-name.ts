/** Suggests the known name that is nearest to one that nobody knows. */
import { editDistance } from '../domain/text.ts';

/** Names longer than this are no slip of a known one; comparing them would only cost time. */
const lengthMax = 60;

/** The known names that begin with a word, else the nearest, else those that contain it; none where nothing is near. */
export function likelyNames(word: string, known: readonly string[]): string[] {
  const lower = word.toLowerCase();
  const begun = word === '' ? [] : known.filter((name) => name.toLowerCase().startsWith(lower));
  if (begun.length > 0) return begun;
  const nearest = nearestName(word, known);
  if (nearest !== null) return [nearest];
  // Shorter parts are in names by chance.
  return word.length < 4 ? [] : known.filter((name) => name.toLowerCase().includes(lower));
}

/** The nearest of the known names, when it is near enough to be meant; case does not matter. */
export function nearestName(name: string, known: readonly string[]): string | null {
  if (name.length > lengthMax) return null;
  const lower = name.toLowerCase();
  let best: string | null = null;
  let bestDistance = Math.min(name.length, Math.floor(Math.max(3, name.length / 4 + 1)));
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue;
    const distance = editDistance(lower, candidate.toLowerCase());
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}
