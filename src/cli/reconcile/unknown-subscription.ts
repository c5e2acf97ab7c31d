/** What is said to a name that no subscription ever had. */
import { AppError } from '../../domain/app-error.ts';

/** An error with the code `usage` that says which names there are. */
export function unknownSubscription(
  unknown: readonly string[],
  known: readonly string[],
): AppError {
  const names = known.length === 0 ? 'none' : known.toSorted().join(', ');
  return new AppError(
    'usage',
    `There never was a subscription ${unknown.join(', ')} in this data directory. Known are: ${names}.`,
  );
}
