/** Reads a profile that V8 has written, and adds up the time of each function. */
import { readFileSync } from 'node:fs';

/** Time spent in a function itself, without what it calls; `place` is its file, empty for native code. */
export interface FunctionTime {
  readonly name: string;
  readonly place: string;
  readonly us: number;
}

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** The functions of a `.cpuprofile` file, the most expensive first. */
export function readCpuProfile(file: string): FunctionTime[] {
  // Written by V8, in the form of its inspector's protocol.
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile;
  const frames = new Map(nodes.map((node) => [node.id, node]));
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((c) => [c, id])));
  const times = new Map<string, FunctionTime>();
  samples.forEach((id, i) => {
    const { name, place } = functionOf(id, frames, callers);
    const key = `${name} ${place}`;
    const us = (times.get(key)?.us ?? 0) + (timeDeltas[i] ?? 0);
    times.set(key, { name, place, us });
  });
  return [...times.values()].toSorted((a, b) => b.us - a.us);
}

/** Native code has no file: it is told apart by who called it. */
function functionOf(
  id: number,
  frames: ReadonlyMap<number, CpuProfile['nodes'][number]>,
  callers: ReadonlyMap<number, number>,
): Pick<FunctionTime, 'name' | 'place'> {
  const { functionName = '', url = '' } = frames.get(id)?.callFrame ?? {};
  const name = functionName === '' ? '(anonymous)' : functionName;
  if (url !== '' || name.startsWith('(')) return { name, place: shortPlace(url) };
  const caller = frames.get(callers.get(id) ?? -1)?.callFrame;
  return { name: `${name} (native)`, place: shortPlace(caller?.url ?? '') };
}

/** From `src/` or the package's name on. */
function shortPlace(url: string): string {
  return url.replace(/^.*\/node_modules\//, '').replace(/^.*\/src\//, 'src/');
}
