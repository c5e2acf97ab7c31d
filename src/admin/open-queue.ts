/** Composes the client of the queues of pull subscriptions, with its request budget. */

import { type Io, pause } from '../core/cli/io.ts';
import { createOutboundClient } from '../core/http/outbound-client.ts';
import { type AppError, isAppError } from '../core/terms/app-error.ts';
import { createAcquireLock } from '../store/engine/locks.ts';
import type { AccessTokens, Account } from './account.ts';
import { catalogue } from './authorized-call.ts';
import { createPacedRequests } from './listing-requests.ts';
import { createReadPage } from './page-readers.ts';
import type { PullQueue } from './pull-queue.ts';
import { createPullQueue } from './queue-client.ts';
import { createAccessTokens } from './session.ts';
import type { AccountConfig } from './settings.ts';

/** Shorter than the time in which a receiver stops. Requests are sent once: the reader retries. */
const attemptTimeoutMs = 15_000;

/** Settings of the queues. */
export type PullConfig = Pick<
  AccountConfig,
  'dataDir' | 'catalogueUrl' | 'pullRequestsPerMinute'
> & { account: Account };

/** The queues share one request budget. A shutdown does not abort acknowledgements. */
export function openPullQueue(
  { account, dataDir, catalogueUrl, pullRequestsPerMinute: requestsPerMinute }: PullConfig,
  { nowUs, random, fetch }: Pick<Io, 'nowUs' | 'random' | 'fetch'>,
): PullQueue {
  const acquireLock = createAcquireLock(dataDir);
  const tokens = pausedAfterRefusal(
    createAccessTokens({ account, dataDir, nowUs, fetch, acquireLock }),
    nowUs,
  );
  const client = createOutboundClient({
    ...catalogue,
    fetch,
    random,
    timing: { attemptTimeoutMs, totalTimeoutMs: attemptTimeoutMs },
    retries: 0,
  });
  const time = { nowMs: () => nowUs() / 1_000, pause };
  const requests = createPacedRequests({ client, requestsPerMinute, time });
  const unlimited = new AbortController().signal;
  return createPullQueue({
    catalogueUrl,
    tokens,
    readPage: createReadPage(),
    send: (request) => requests.send(request, request.signal ?? unlimited),
  });
}

/** Time without a login after a refused one: an identity provider may lock accounts with many wrong passwords. */
const refusedLoginUs = 600_000_000;

/** Returns the tokens of a reader that retries for ever. */
function pausedAfterRefusal(tokens: AccessTokens, nowUs: () => number): AccessTokens {
  let refused: { error: AppError; atUs: number } | null = null;
  return {
    ...tokens,
    get: async () => {
      if (refused !== null && Math.abs(nowUs() - refused.atUs) < refusedLoginUs)
        throw refused.error;
      refused = null;
      try {
        return await tokens.get();
      } catch (error) {
        // Refused tokens have their own, shorter pause.
        const isRefused =
          isAppError(error, 'unauthorized') && error.facts.retryAfterMs === undefined;
        if (isRefused) refused = { error, atUs: nowUs() };
        throw error;
      }
    },
  };
}
