/** A test service on loopback: sends scripted responses and records every request. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { listening } from '../../helpers/tcp-server.ts';

export interface SeenRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** As received. */
  body: string;
}

export interface AnswerParts {
  status?: number;
  headers?: Record<string, string>;
  /** A text is sent unchanged; anything else as JSON. */
  body?: unknown;
}

/** A response; 'hang' never sends one, 'cut' breaks the connection, a function responds itself. */
export type Answer = AnswerParts | 'hang' | 'cut' | ((response: ServerResponse) => void);

export interface AnsweringServer {
  url: string;
  requests: SeenRequest[];
}

/**
 * Starts a server that is closed when the test has finished. A list is used in order; its last
 * element is repeated.
 */
export async function startServer(
  answers: Answer[] | ((request: SeenRequest) => Answer),
): Promise<AnsweringServer> {
  const requests: SeenRequest[] = [];
  const answerTo = (request: SeenRequest) =>
    typeof answers === 'function'
      ? answers(request)
      : (answers[Math.min(requests.length, answers.length) - 1] ?? 'cut');
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      const seen = { method, path, headers, body: Buffer.concat(chunks).toString() };
      requests.push(seen);
      send(answerTo(seen), response);
    });
  });
  const port = await listening(server);
  return { url: `http://127.0.0.1:${port}`, requests };
}

function send(answer: Answer, response: ServerResponse): void {
  if (answer === 'hang') return;
  if (answer === 'cut') response.destroy();
  else if (typeof answer === 'function') answer(response);
  else write(answer, response);
}

function write(answer: AnswerParts, response: ServerResponse): void {
  const { status = 200, headers, body } = answer;
  const type = typeof body === 'string' ? 'text/plain' : 'application/json';
  response.writeHead(status, {
    ...(body === undefined ? {} : { 'Content-Type': type }),
    ...headers,
  });
  response.end(typeof body === 'string' || body === undefined ? body : JSON.stringify(body));
}
