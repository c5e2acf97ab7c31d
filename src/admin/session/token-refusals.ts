/** Remembers that tokens were refused, so that an account nobody lets in is not logged in to for ever. */
import { AppError } from '../../domain/app-error.ts';
import type { HeldToken, Session } from './session-file.ts';

/** A token refused this soon was never good. */
const freshUs = 30_000_000;
/** After two such tokens in a row nobody logs in for a while: a login takes one of 100 sessions. */
const loginPauseUs = 600_000_000;
const inARowMax = 2;

export interface TokenRefusals {
  note(token: HeldToken): void;
  /**
   * True when refreshing `session` would not help, since a token fresh from it was refused. Throws
   * `unauthorized` when a new login would not help either.
   */
  demandLogin(session: Session | null): boolean;
}

export function createTokenRefusals(nowUs: () => number): TokenRefusals {
  let inARow = 0;
  let lastAtUs = 0;
  return {
    note: ({ obtainedAtUs }) => {
      lastAtUs = nowUs();
      inARow = lastAtUs - obtainedAtUs < freshUs ? inARow + 1 : 0;
    },
    demandLogin: (session) => {
      // The last token was not refused, it has only ended.
      if (session?.accessToken) inARow = 0;
      if (inARow >= inARowMax && Math.abs(nowUs() - lastAtUs) < loginPauseUs) {
        throw new AppError(
          'unauthorized',
          'The catalogue does not accept the token that the identity provider gives out for this account, not after a new login either.',
          {
            advice:
              'Check that EARSHOT_TOKEN_URL and EARSHOT_CLIENT_ID belong to EARSHOT_CATALOGUE_URL, and that the account is active. The next login is tried in ten minutes.',
          },
        );
      }
      return inARow > 0;
    },
  };
}
