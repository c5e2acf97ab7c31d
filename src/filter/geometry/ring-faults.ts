/** How the rings of a geometry must not lie: to themselves, to their outline, to other parts. */
import type { Rings } from '../../domain/geometry.ts';
import { type Contact, findContacts, type Touch } from './contacts.ts';
import { type Effort, EffortExhausted } from './effort.ts';
import type { GeometryFault } from './geometry-fault.ts';
import { nestingFaults } from './nesting.ts';
import type { RingPath } from './ring-path.ts';

const tooIntricate: GeometryFault = {
  code: 'too-intricate',
  message:
    'The geometry is too intricate to check: too many edges touch or lie side by side. Simplify it, or split it into several filters.',
};

/** Rings in a tangle cross in millions of places; after this many there is nothing new to learn. */
const brokenMax = 1000;

/**
 * Faults of rings whose form is right. Where rings cross, nothing is said of what is inside of what.
 * Where the effort ends first, what was found until then, or that it did.
 */
export function ringFaults(
  paths: readonly RingPath[],
  parts: readonly Rings[],
  faultsMax: number,
  effort: Effort,
): GeometryFault[] {
  const faults: GeometryFault[] = [];
  const touches: Touch[] = [];
  const told = new Map<RingPath, Set<RingPath>>();
  let broken = 0;
  const report = (contact: Contact) => {
    const { a, b } = contact;
    const fault = contactFault(contact);
    if (fault !== null) broken += 1;
    if (fault === null) {
      touches.push({ a, b, place: placeKey(contact) });
    } else if (told.get(a)?.has(b) !== true) {
      faults.push(fault);
      // One fault says enough of two rings.
      for (const [ring, other] of [
        [a, b],
        [b, a],
      ] as const) {
        told.set(ring, (told.get(ring) ?? new Set()).add(other));
      }
    }
    return faults.length < faultsMax && broken < brokenMax;
  };
  try {
    findContacts(paths, effort, report);
    if (faults.length > 0) return faults;
    return nestingFaults(paths, parts, touches, effort).slice(0, faultsMax);
  } catch (error) {
    if (!(error instanceof EffortExhausted)) throw error;
    return faults.length > 0 ? faults : [tooIntricate];
  }
}

/** A place by its name, the same on both sides of the antimeridian. */
function placeKey({ place: [x, y] }: Contact): string {
  return `${x - 360 * Math.floor((x + 180) / 360)} ${y}`;
}

/** What a contact breaks; null for a touch that is allowed as such. */
function contactFault(contact: Contact): GeometryFault | null {
  const { a, b, kind, place, corner } = contact;
  const at = b.corners[corner];
  const where = { ...(at === undefined ? {} : { at }) };
  const near = `near ${showPlace(place)}`;
  if (kind === 'self') {
    const message = `The ring crosses or touches itself ${near}. Make it a simple loop.`;
    return { code: 'self-intersecting', message, ...where };
  }
  if (a.part !== b.part) {
    if (kind === 'touch' && !overlapAt(contact)) return null;
    const message = `Two parts overlap or share an edge ${near}. Join them to one polygon.`;
    return { code: 'parts-overlapping', message, ...where };
  }
  if (kind !== 'touch') {
    const message = `Two rings of a polygon cross or share an edge ${near}. A hole must lie inside the outline, apart from the others.`;
    return { code: 'rings-crossing', message, ...where };
  }
  return touchFault(contact, near, where);
}

/** Rings of one polygon that touch: the hole from within the outline, two holes from the outside. */
function touchFault(
  { a, b, aInsideB, bInsideA }: Contact,
  near: string,
  where: Pick<GeometryFault, 'at'>,
): GeometryFault | null {
  if (a.place !== 0 && b.place !== 0) {
    if (!aInsideB && !bInsideA) return null;
    const message = `A hole lies inside another hole ${near}. Leave it out.`;
    return { code: 'holes-nested', message, ...where };
  }
  if (a.place === 0 ? bInsideA : aInsideB) return null;
  const message = `A hole lies outside of its outline ${near}. Make it a part of its own, or leave it out.`;
  return { code: 'hole-outside', message, ...where };
}

/** Whether the insides of two parts overlap at a touch; the inside of a part is outside of its holes. */
function overlapAt({ a, b, aInsideB, bInsideA }: Contact): boolean {
  return (a.place === 0) === bInsideA || (b.place === 0) === aInsideB;
}

function showPlace([x, y]: readonly [number, number]): string {
  const longitude = x - 360 * Math.floor((x + 180) / 360);
  return `${Number(longitude.toFixed(6))} ${Number(y.toFixed(6))}`;
}
