/** The account for the catalogue's lists: they are public, so that it is used only when asked for. */
import { AppError } from '../../domain/app-error.ts';
import type { AccessTokens } from '../session/access-tokens.ts';

export interface ListLogin {
  /** Null as long as nobody has asked for one. Rejects as `AccessTokens` does. */
  token(): Promise<string | null>;
  /**
   * The catalogue has refused the last request. Rejects with `unauthorized` when there is no account.
   * `purpose` completes "refuses to …"; `said` has its words, for the end.
   */
  demanded(refusal: { purpose: string; status: number; said: string }): Promise<void>;
}

export function createListLogin(tokens: AccessTokens | null): ListLogin {
  let isNeeded = false;
  let sent: string | null = null;
  return {
    token: async () => {
      sent = isNeeded && tokens !== null ? await tokens.get() : null;
      return sent;
    },
    demanded: async ({ purpose, status, said }) => {
      if (tokens === null) {
        // 401 says so (RFC 9110, 15.5.2); what 403 is for, only its words do.
        const [refuses, words] =
          status === 401
            ? [`without a login (${status})`, '']
            : [`(${status}), perhaps as it wants a login`, said];
        throw new AppError('unauthorized', `The catalogue refuses to ${purpose} ${refuses}.`, {
          advice: `Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD, or EARSHOT_ACCESS_TOKEN.${words}`,
        });
      }
      if (sent !== null) await tokens.refused(sent);
      isNeeded = true;
    },
  };
}
