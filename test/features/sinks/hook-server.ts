/** A user's web service on loopback that receives webhooks and answers as the test requests. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { NotificationDocument } from '../../../src/features/messages/document.ts';
import { listening } from '../../helpers/tcp-server.ts';

interface Hooked {
  method: string | undefined;
  headers: IncomingHttpHeaders;
  body: string;
  data: NotificationDocument;
}

/** Answers a request, or lets it `hang`. Without either, the answer is 204. */
export type HookAnswer = (hooked: Hooked, response: ServerResponse) => unknown;

/** Answers every request with this status. */
export const answering =
  (status: number, headers: Record<string, string> = {}): HookAnswer =>
  (_hooked, response) =>
    void response.writeHead(status, headers).end();

export async function startHook(
  options: { answer?: HookAnswer; tls?: { key: string; cert: string } } = {},
) {
  const received: Hooked[] = [];
  let answer: HookAnswer = options.answer ?? (() => undefined);
  const { tls } = options;
  const server = tls === undefined ? createServer() : createTlsServer(tls);
  server.on('request', async (request, response: ServerResponse) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const { method, headers } = request;
    const hooked = { method, headers, body, data: JSON.parse(body).data };
    received.push(hooked);
    if (answer(hooked, response) === 'hang' || response.writableEnded) return;
    response.writeHead(204).end();
  });
  const port = await listening(server);
  return {
    port,
    url: `${tls === undefined ? 'http://127.0.0.1' : 'https://localhost'}:${port}/hook`,
    received,
    positions: () => received.map(({ data }) => data.position),
    change: (next: HookAnswer) => {
      answer = next;
    },
  };
}
