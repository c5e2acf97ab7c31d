/** Subscriptions that sinks want and nobody knows: slips of the pen, or such as are still to come. */
import type { SinkDefinition } from '../domain/sinks.ts';
import { nearestName } from '../filter/nearest-name.ts';

/** A name in a sink's `subscriptions` that no subscription has or had. */
export interface UnknownSubscription {
  /** Such as `sinks.archive.subscriptions: there is no subscription alsp.` */
  message: string;
  /** The name that may be meant, or those that there are. */
  hint: string;
}

/** `known` are those of the file, and those that were ever registered. */
export function unknownSubscriptions(
  definitions: readonly Pick<SinkDefinition, 'name' | 'subscriptions'>[],
  known: readonly string[],
): UnknownSubscription[] {
  const names = [...new Set(known)].toSorted();
  const all = names.length === 0 ? 'There is none yet.' : `Known are: ${names.join(', ')}.`;
  return definitions.flatMap(({ name, subscriptions }) =>
    subscriptions
      .filter((wanted) => !names.includes(wanted))
      .map((wanted) => {
        const nearest = nearestName(wanted, names);
        return {
          message: `sinks.${name}.subscriptions: there is no subscription ${wanted}.`,
          hint: nearest === null ? all : `Did you mean ${nearest}? ${all}`,
        };
      }),
  );
}
