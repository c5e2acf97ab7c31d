/** Loads `earshot.config.ts` of each folder it is told, as the program does: no test runner in between. */
import { loadSubscriptionsFile } from '../../src/config/subscriptions-file.ts';
import type { AppError } from '../../src/domain/app-error.ts';
import type { DesiredSubscription } from '../../src/domain/subscription.ts';

/** What is sent back for each folder. */
export type Loaded =
  | { subscriptions: DesiredSubscription[] | null }
  | Pick<AppError, 'name' | 'code' | 'message' | 'details'>;

process.on('message', (folder: string) => {
  loadSubscriptionsFile(folder).then(
    (subscriptions) => answer({ subscriptions }),
    ({ name, code, message, details }: AppError) => answer({ name, code, message, details }),
  );
});

function answer(loaded: Loaded): void {
  process.send?.(loaded);
}
