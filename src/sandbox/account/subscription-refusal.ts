/** The error for what the subscription service does not do. */

/** Why: a filter that is wrong, a request that asks for the impossible, a limit, an id nobody has. */
export type RefusalKind = 'filter' | 'request' | 'limit' | 'unknown-id';

/** Thrown before anything was changed; the message is what the service answers. */
export class SubscriptionRefusal extends Error {
  override readonly name = 'SubscriptionRefusal';
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string) {
    super(message);
    this.kind = kind;
  }
}
