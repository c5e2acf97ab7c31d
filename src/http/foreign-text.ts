/** Makes words of another service safe to pass on: no secret of ours, nothing that moves a cursor. */
import { printable } from '../domain/text.ts';

/** What stands where a secret stood, or where a text was cut. */
const ellipsis = '…';

/** Enough to recognise a body that is in none of the known forms. */
export const hintCharactersMax = 200;

/**
 * The words unchanged, except: our own secrets, in the forms in which an echo may hold them, become
 * `…`; control characters and marks that turn the direction of text around are replaced; and what
 * exceeds `charactersMax` is cut off.
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
  // The longest first: a shorter one within it would leave the rest behind.
  const longestFirst = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return longestFirst.reduce((rest, form) => rest.replaceAll(form, ellipsis), text);
}

/**
 * What a body that is in none of the known forms says: the title of a page, else all of it. Uncut,
 * so that a secret in it is found whole: cut it with `foreignText`.
 */
export function hintOf(body: string): string {
  if (!body.trimStart().startsWith('<')) return body;
  const title = /<title[^<>]*>([^<]*)</i.exec(body.slice(0, 10_000))?.[1] ?? '';
  return `(a web page) ${title.replaceAll(/\s+/g, ' ')}`.trim();
}
