/** How much work a check may take, so that no geometry can stall the thread that checks it. */

/**
 * What is left, in steps of some nanoseconds; several geometries may share it. A clock would refuse on
 * one machine what another takes.
 */
export interface Effort {
  left: number;
}

/** About a tenth of a second: ten times what a coast with 5,000 corners and its islands takes. */
const stepsMax = 15_000_000;

export function newEffort(): Effort {
  return { left: stepsMax };
}

/** The effort is used up: what was found until then says nothing about the rest. */
export class EffortExhausted extends Error {}

/** Takes steps; throws EffortExhausted when none are left. */
export function spend(effort: Effort, steps: number): void {
  effort.left -= steps;
  if (effort.left < 0) throw new EffortExhausted();
}
