/** Cuts a run at one of its calls to the world, and looks on between the calls. */
import { AppError } from '../../../src/domain/app-error.ts';

/** `killed`: neither this call nor any after it is answered. `unavailable`: only this one fails. */
export interface Cut {
  /** The number of the call, from 0. */
  call: number;
  /** Before it had its effect, or after. */
  when: 'before' | 'after';
  how: 'killed' | 'unavailable';
}

/**
 * The same targets, whose methods may be cut; all of them must be asynchronous. `calls` are those so
 * far, as "client.create". `between` is called before and after the effect of every call.
 */
export function cutCalls<Targets extends Record<string, object>>(
  targets: Targets,
  cut: Cut | null,
  between: () => void,
): Targets & { calls: string[] } {
  const calls: string[] = [];
  let isDead = false;
  const fail = (): never => {
    isDead = cut?.how === 'killed';
    if (isDead) throw new Error('killed');
    throw new AppError('unavailable', 'No answer came.');
  };
  const wrapped = <Fields extends object>(target: Fields, kind: string): Fields =>
    new Proxy(target, {
      get: (_, key, receiver) => {
        const method: unknown = Reflect.get(target, key, receiver);
        if (typeof method !== 'function') return method;
        return async (...given: unknown[]) => {
          if (isDead) throw new Error('killed');
          const call = calls.push(`${kind}.${String(key)}`) - 1;
          between();
          if (call === cut?.call && cut.when === 'before') fail();
          try {
            return await method.apply(target, given);
          } finally {
            between();
            if (call === cut?.call && cut.when === 'after') fail();
          }
        };
      },
    });
  const cuttable = Object.entries(targets).map(([kind, target]) => [kind, wrapped(target, kind)]);
  return { ...targets, ...Object.fromEntries(cuttable), calls };
}
