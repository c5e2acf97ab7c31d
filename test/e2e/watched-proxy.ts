/** Proxy on loopback between a program and a service, in which a test can intervene. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type RequestOptions } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { sendRequest } from '../helpers/send-request.ts';
import { listening } from '../helpers/tcp-server.ts';

/** Before a request reaches the service; after it was processed, before the answer; or after the answer was passed on. */
export type Moment = 'before' | 'after' | 'answered';

/** Called at each moment; its delay postpones the request. */
type Look = (at: { moment: Moment; path: string }) => void | Promise<void>;

const nothing = () => undefined;

/** Starts a proxy in front of an address like `http://127.0.0.1:1234`, with HTTPS if there is a certificate. */
export async function startWatchedProxy(
  target: string,
  { agent, ...pair }: { agent?: RequestOptions['agent']; cert?: string; key?: string } = {},
) {
  const answered: { path: string; status: number }[] = [];
  let look: Look = nothing;
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = 'GET', url: path = '/', headers } = incoming;
    const body = await buffer(incoming);
    await look({ path, moment: 'before' });
    const answer = await sendRequest({ url: `${target}${path}`, agent, method, headers }, body);
    answered.push({ path, status: answer.status });
    await look({ path, moment: 'after' });
    const end = () => void look({ path, moment: 'answered' });
    outgoing.writeHead(answer.status, answer.headers).end(answer.body, end);
  };
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    handle(incoming, outgoing).catch(() => outgoing.destroy());
  };
  const isTls = pair.cert !== undefined;
  const server = isTls ? createTlsServer(pair, onRequest) : createServer(onRequest);
  const port = await listening(server);
  const watch = (watching: Look) => {
    look = watching;
  };
  return {
    url: isTls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`,
    answered,
    watch,
    /**
     * Calls `cut` at this request, counted from 1, of those whose path contains `part` (default: all). From the cut on,
     * nothing is forwarded or answered.
     */
    cutAt: (number: number, moment: Moment, cut: () => void, part = '') => {
      let [count, isCut] = [0, false];
      watch((at) => {
        const isCounted = !isCut && at.path.includes(part);
        if (isCounted && at.moment === 'before') count += 1;
        if (isCounted && at.moment === moment && count === number) {
          isCut = true;
          cut();
        }
        return isCut ? new Promise(nothing) : undefined;
      });
    },
    /** Forwards all requests again. */
    letPass: () => watch(nothing),
  };
}
