/** Processes that are killed while sinks deliver, and checks of what the sinks received. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';

/** A document as a sink received it. */
export interface Taken {
  id: string;
  position: number;
  productId: string;
}

export async function killed(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

export async function startChild(file: string, args: readonly string[]): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, file), args, { execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

export function missing(positions: readonly number[], taken: readonly Taken[]): number[] {
  const known = new Set(taken.map(({ position }) => position));
  return positions.filter((position) => !known.has(position));
}

/** Returns the number of repeated deliveries. */
export const doubles = (taken: readonly Taken[]) =>
  taken.length - new Set(taken.map(({ id }) => id)).size;

/** Checks that the first deliveries of each product came in the order of the log. */
export function expectOrder(taken: readonly Taken[]): void {
  const latest = new Map<string, number>();
  const seen = new Set<string>();
  for (const { id, productId, position } of taken) {
    if (seen.has(id)) continue;
    seen.add(id);
    expect(position).toBeGreaterThan(latest.get(productId) ?? 0);
    latest.set(productId, position);
  }
}
