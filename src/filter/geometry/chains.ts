/** Joins lines that end on the antimeridian to rings, along it. */
import type { Position, Ring } from '../../domain/geometry.ts';

/** One end of a chain. */
interface End {
  readonly chain: number;
  readonly isLast: boolean;
  readonly position: Position;
}

/**
 * Closes chains whose ends all have a longitude of -180 or 180. Up each of these lines, inside begins
 * with every other end, so ends are joined two by two. Rings without any width are left out.
 */
export function joinChains(chains: readonly (readonly Position[])[]): Ring[] {
  const partners = partnersOf(chains);
  const used = new Set<number>();
  const rings: Ring[] = [];
  for (const start of chains.keys()) {
    const ring: Position[] = [];
    let chain = start;
    let forwards = true;
    while (!used.has(chain)) {
      used.add(chain);
      const positions = chains[chain] ?? [];
      for (const position of forwards ? positions : positions.toReversed()) ring.push(position);
      const partner = partners.get(keyOf(chain, forwards));
      if (partner === undefined) break;
      chain = partner.chain;
      // Entered by its end, a chain is followed back to its beginning.
      forwards = !partner.isLast;
    }
    if (ring.some(([longitude]) => longitude !== ring[0]?.[0])) rings.push(closed(ring));
  }
  return rings;
}

function partnersOf(chains: readonly (readonly Position[])[]): Map<string, End> {
  const partners = new Map<string, End>();
  const ends = chains.flatMap((positions, chain) => endsOf(positions, chain));
  for (const longitude of [-180, 180]) {
    const onLine = ends.filter(({ position }) => position[0] === longitude);
    onLine.sort((a, b) => a.position[1] - b.position[1]);
    for (let i = 0; i + 1 < onLine.length; i += 2) {
      const [lower, upper] = [onLine[i], onLine[i + 1]];
      if (lower === undefined || upper === undefined) continue;
      partners.set(keyOf(lower.chain, lower.isLast), upper);
      partners.set(keyOf(upper.chain, upper.isLast), lower);
    }
  }
  return partners;
}

function endsOf(positions: readonly Position[], chain: number): End[] {
  const [first, last] = [positions[0], positions.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [
    { chain, isLast: false, position: first },
    { chain, isLast: true, position: last },
  ];
}

function keyOf(chain: number, isLast: boolean): string {
  return `${chain} ${isLast ? 'last' : 'first'}`;
}

/** Without positions that repeat the one before, and with the first one at the end. */
function closed(positions: readonly Position[]): Ring {
  const ring = positions.filter(
    ([x, y], i) => i === 0 || x !== positions[i - 1]?.[0] || y !== positions[i - 1]?.[1],
  );
  const [first, last] = [ring[0], ring.at(-1)];
  const isClosed = first?.[0] === last?.[0] && first?.[1] === last?.[1];
  return isClosed || first === undefined ? ring : [...ring, first];
}
