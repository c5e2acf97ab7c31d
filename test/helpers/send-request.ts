/** Sends one request to a server that a test started, over HTTP or HTTPS. */
import { request as requestPlain } from 'node:http';
import { type RequestOptions, request as requestTls } from 'node:https';
import { text } from 'node:stream/consumers';
import { urlToHttpOptions } from 'node:url';

export interface Answer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  body: string;
}

/**
 * Rejects when the connection breaks before the response is complete. By default HTTPS to
 * 127.0.0.1; `url` gives protocol, host, port and path.
 */
export function sendRequest(
  { url, ...more }: RequestOptions & { url?: string | URL },
  body?: string | Uint8Array,
): Promise<Answer> {
  const target = url === undefined ? {} : urlToHttpOptions(new URL(url));
  const options = { host: '127.0.0.1', ...target, ...more };
  const request = options.protocol === 'http:' ? requestPlain : requestTls;
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      const { statusCode: status = 0, headers } = response;
      text(response).then((body) => resolve({ status, headers, body }), reject);
    });
    sent.on('error', reject).end(body);
  });
}
