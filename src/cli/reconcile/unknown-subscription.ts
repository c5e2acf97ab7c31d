/** What is said to a name that no subscription ever had, and where there never was one. */
import { AppError } from '../../domain/app-error.ts';

/** An error with the code `usage` that says which names there are. */
export function unknownSubscription(
  unknown: readonly string[],
  known: readonly string[],
): AppError {
  return new AppError(
    'usage',
    `There never was a subscription ${unknown.join(', ')} in this data directory. Known are: ${known.toSorted().join(', ')}.`,
  );
}

/** An error with the code `configuration`; `then` completes "Run `earshot register` first; …". */
export function neverRegistered(then: string): AppError {
  return new AppError(
    'configuration',
    'No subscription was ever registered in this data directory, so nothing says what should be here.',
    { advice: `Run \`earshot register\` first; ${then}.` },
  );
}
