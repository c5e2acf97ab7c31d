/** Which subscriptions are counted under their own names, so that nobody can make memory grow by inventing some. */

/** No subscription can be called so. */
const noName = '(none)';
const otherName = '(other)';

/** Names that are not registered here: of an app of one's own, of another data directory. */
const unregisteredMax = 50;

export interface SubscriptionLabels {
  /** The label of a name in the path. */
  labelOf(subscription: string | null): string;
  /** Names that are counted under their own from now on, however many others there are. */
  register(names: readonly string[]): void;
}

export function createSubscriptionLabels(): SubscriptionLabels {
  const registered = new Set<string>();
  const others = new Set<string>();
  return {
    labelOf: (subscription) => {
      if (subscription === null) return noName;
      if (registered.has(subscription) || others.has(subscription)) return subscription;
      if (others.size === unregisteredMax) return otherName;
      others.add(subscription);
      return subscription;
    },
    register: (names) => {
      for (const name of names) registered.add(name);
    },
  };
}
