/** Tells alerts to a URL: the incoming webhook of a chat system, or a program of the user's. */
import { AppError } from '../../domain/app-error.ts';
import { foreignText, hintCharactersMax, hintOf } from '../../http/foreign-text.ts';
import { createOutboundClient } from '../../http/outbound-client.ts';
import { type Teller, tellTimeoutMs } from './tell-through.ts';

/**
 * POSTs the message as JSON; any status of 200 to 299 means that it was taken, whatever its
 * body. The URL is a secret, as whoever
 * has it can post: errors name its host alone. `variable` holds the URL, for the words of errors.
 */
export function createUrlTeller(options: {
  url: string;
  variable: string;
  fetch: typeof fetch;
  random: () => number;
  timeoutMs?: number;
}): Teller {
  const { url, variable, random, timeoutMs = tellTimeoutMs } = options;
  return async (message, signal) => {
    const client = createOutboundClient({
      service: 'the service that alerts are told to',
      variable,
      fetch: (input, init) => {
        const request = new Request(input, init);
        return options.fetch(request, { signal: AbortSignal.any([request.signal, signal]) });
      },
      random,
      bodies: 'of-failures',
      timing: { attemptTimeoutMs: timeoutMs, totalTimeoutMs: timeoutMs },
    });
    const purpose = 'tell an alert';
    const answer = await client({ method: 'POST', url, headers: {}, body: message, purpose });
    if (answer.status >= 200 && answer.status <= 299) return;
    const words = foreignText(hintOf(answer.text), {
      secrets: secretsIn(url),
      charactersMax: hintCharactersMax,
    });
    const said = words === '' ? '' : `, saying: ${words}`;
    throw new AppError(
      'unavailable',
      `The service that alerts are told to (${new URL(url).host}) answered ${answer.status}${said}.`,
      { advice: `Check ${variable}.` },
    );
  };
}

/** Shorter parts of a path, such as `hooks`, are no secrets, and would garble the words. */
const secretCharactersMin = 8;

/** An answer may quote the URL, or the part of it that lets one post. */
function secretsIn(url: string): string[] {
  const { pathname, search, searchParams, username, password } = new URL(url);
  const parts = [...pathname.split('/'), ...searchParams.values(), username, password];
  return [url, pathname, search, ...parts].filter(({ length }) => length >= secretCharactersMin);
}
