/** The functions of a user's own, called so that what becomes of them changes no answer. */
import type { Logger } from '../domain/ports.ts';
import type { Outcome } from './receiver-app.ts';

/** What users are told of a request: the receipt stays here. */
type Observe = (...told: [outcome: Outcome, subscription: string | null]) => void;

/** A log that may throw, or return promises that reject; there is nowhere to tell it. */
export function guardLog(log: Logger): Logger {
  const nowhere = () => undefined;
  return {
    debug: guarded((fields: object, message: string) => log.debug(fields, message), nowhere),
    info: guarded((fields: object, message: string) => log.info(fields, message), nowhere),
    warn: guarded((fields: object, message: string) => log.warn(fields, message), nowhere),
    error: guarded((fields: object, message: string) => log.error(fields, message), nowhere),
  };
}

/** The same for `onOutcome`, whose failures are told to the log; that must not throw. */
export function guardObserve(observe: Observe, log: Logger): Observe {
  const tell: Observe = (outcome, subscription) => observe(outcome, subscription);
  return guarded(tell, (err) => log.error({ err }, 'onOutcome failed'));
}

function guarded<Args extends unknown[]>(
  call: (...args: Args) => unknown,
  onFailure: (error: unknown) => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      Promise.resolve(call(...args)).catch(onFailure);
    } catch (error) {
      onFailure(error);
    }
  };
}
