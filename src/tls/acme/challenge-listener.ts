/** The listener for http-01 challenges: answers them, and nothing else (RFC 8555, 8.3). */
import type { ListenAddress } from '../../http/listen-address.ts';
import { type Listener, startListener } from '../../http/listener.ts';
import type { ChallengeFolder } from './challenge-folder.ts';

export const challengePath = '/.well-known/acme-challenge/';

/** An open port for a handful of small requests. */
const limits = {
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 5_000,
  keepAliveTimeoutMs: 5_000,
  connectionsMax: 100,
};

/** Rejects with `configuration` when the port cannot be opened. */
export function startChallengeListener(options: {
  listen: ListenAddress;
  challenges: Pick<ChallengeFolder, 'answer'>;
}): Promise<Listener> {
  const { listen, challenges } = options;
  return startListener({
    fetch: (request) => respond(request, challenges),
    listen,
    listenVariable: 'EARSHOT_ACME_HTTP_LISTEN',
    limits,
    onBadRequest: () => new Response(null, { status: 400 }),
  });
}

function respond(request: Request, challenges: Pick<ChallengeFolder, 'answer'>): Response {
  const { pathname } = new URL(request.url);
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const text =
    isRead && pathname.startsWith(challengePath)
      ? challenges.answer(pathname.slice(challengePath.length))
      : null;
  if (text === null) return new Response('Not found.\n', { status: 404 });
  return new Response(text, { headers: { 'content-type': 'application/octet-stream' } });
}
