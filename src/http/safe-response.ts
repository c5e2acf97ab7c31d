/** Sets the headers that every answer has, whoever writes it. */
import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
} from 'node:http';

/** What is recommended for answers that no browser is meant to show. */
const always = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
};
/** It holds for the name on all its ports, so it is not spread to names below it. */
const overHttps = { ...always, 'strict-transport-security': 'max-age=31536000' };

/**
 * The class of a server's responses. Headers given to `writeHead` win over these. Setting each on each response
 * would cost as much as all else that is done about headers.
 */
export function safeResponse({ isSecure }: { isSecure: boolean }): typeof ServerResponse {
  const safe = isSecure ? overHttps : always;
  return class SafeResponse<Request extends IncomingMessage> extends ServerResponse<Request> {
    override writeHead(
      status: number,
      reason?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
      headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
    ): this {
      if (typeof reason === 'string')
        return super.writeHead(status, reason, withSafe(safe, headers));
      return super.writeHead(status, withSafe(safe, reason));
    }
  };
}

function withSafe(
  safe: Readonly<Record<string, string>>,
  given: OutgoingHttpHeaders | OutgoingHttpHeader[] = {},
): OutgoingHttpHeaders | OutgoingHttpHeader[] {
  if (Array.isArray(given)) return [...given, ...Object.entries(safe).flat()];
  const all: OutgoingHttpHeaders = { ...safe, ...given };
  for (const name of Object.keys(given)) {
    const lower = name.toLowerCase();
    if (lower !== name) delete all[lower];
  }
  return all;
}
