/** Makes text of another service safe to print: without our secrets and without control characters. */
import { printable } from '../terms/text.ts';

/** Replaces a secret, and the end of a truncated text. */
const ellipsis = '…';

/** Maximum length of the excerpt of a body in an unknown format. */
export const hintCharactersMax = 200;

/**
 * Returns the text unchanged, except: our secrets, in the forms in which a service may repeat them, become
 * `…`; control characters and marks that change the direction of text are replaced; text over
 * `charactersMax` is truncated.
 */
export function foreignText(
  text: string,
  options: { secrets: readonly string[]; charactersMax: number },
): string {
  const clean = printable(withoutSecrets(text, options.secrets).trim());
  const { charactersMax } = options;
  return clean.length <= charactersMax
    ? clean
    : `${clean.slice(0, charactersMax).toWellFormed()}${ellipsis}`;
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  const forms = secrets
    .filter((secret) => secret !== '')
    .flatMap((secret) => [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret.toWellFormed()),
      new URLSearchParams([['', secret]]).toString().slice(1),
    ]);
  // The longest first: replacing a shorter one inside it would leave the rest.
  const longestFirst = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return longestFirst.reduce((rest, form) => rest.replaceAll(form, ellipsis), text);
}

/** True for HTML, the answer of a proxy or of another site instead of the service. */
export function isWebPage(body: string): boolean {
  return body.trimStart().startsWith('<');
}

/**
 * Returns a hint from a body in an unknown format: the title of a web page, else the complete body. Truncate
 * it with `foreignText`, which needs the complete text to find secrets.
 */
export function hintOf(body: string): string {
  if (!isWebPage(body)) return body;
  const title = /<title[^<>]*>([^<]*)</i.exec(body.slice(0, 10_000))?.[1] ?? '';
  return `(a web page) ${title.replaceAll(/\s+/g, ' ')}`.trim();
}
