/** The doctor's checks of the catalogue account: a token can be had, the catalogue takes it, room is left. */

import type { Account } from '../../domain/account.ts';
import { type Finding, failedFinding } from '../../domain/finding.ts';
import type { AccountLimits } from '../plan/fit-plan.ts';
import type { CatalogueSubscription } from '../service/catalogue-subscription.ts';
import type { SubscriptionClient } from '../service/subscription-client.ts';
import type { AccessTokens } from '../session/access-tokens.ts';

/** Gets a token, from the session that is kept if it lives. */
export async function checkToken(options: {
  account: Account;
  tokens: AccessTokens;
}): Promise<Finding[]> {
  const check = 'token';
  try {
    await options.tokens.get();
  } catch (error) {
    return [failedFinding(check, error, 'Check EARSHOT_ACCOUNT_USERNAME and its password.')];
  }
  if (options.account.kind === 'token') {
    const message =
      'EARSHOT_ACCESS_TOKEN is used as it is; it ends within minutes, and then nothing is maintained.';
    const advice = 'Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD in its place.';
    return [{ check, state: 'warn', message, advice }];
  }
  const message = 'There is a valid token, of a kept session or a login.';
  return [{ check, state: 'pass', message }];
}

/** Lists the account's subscriptions; `listed` is null when that fails. */
export async function checkCatalogue(client: Pick<SubscriptionClient, 'list'>): Promise<{
  findings: Finding[];
  listed: CatalogueSubscription[] | null;
}> {
  const check = 'catalogue';
  try {
    const listed = await client.list();
    const count = listed.length === 1 ? 'one subscription' : `${listed.length} subscriptions`;
    const message = `It answers, and lists ${count} in the account.`;
    return { findings: [{ check, state: 'pass', message }], listed };
  } catch (error) {
    const advice = 'Check EARSHOT_CATALOGUE_URL and the connection of this machine.';
    return { findings: [failedFinding(check, error, advice)], listed: null };
  }
}

/** Counts everything in the account, what others made and pull subscriptions too. */
export function checkLimits(
  listed: readonly CatalogueSubscription[],
  { runningMax, totalMax }: AccountLimits,
): Finding[] {
  const check = 'limits';
  const alive = listed.filter(({ status }) => status !== 'cancelled');
  const running = alive.filter(({ status }) => status === 'running').length;
  const total = alive.length;
  const message = `${running} of ${runningMax} running, ${total} of ${totalMax} in all.`;
  if (running > runningMax || total > totalMax) {
    const advice =
      'The catalogue allows more than is configured: set EARSHOT_SUBSCRIPTIONS_RUNNING_MAX and EARSHOT_SUBSCRIPTIONS_MAX to what it allows.';
    return [{ check, state: 'warn', message, advice }];
  }
  if (total === totalMax) {
    const advice =
      'Delete what is not needed: without room a changed filter means that events are missed for a moment.';
    return [{ check, state: 'warn', message: `${message} There is no room for another.`, advice }];
  }
  return [{ check, state: 'pass', message }];
}
