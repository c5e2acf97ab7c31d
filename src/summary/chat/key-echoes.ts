/** Finds what a service repeats of our key: parts of it, and its forms in headers. */

/** What shows where a part of the key stood. */
const ellipsis = '…';

/** Runs shorter than this are no help to anybody, and may be words. */
const runMin = 8;

/**
 * The words, with `…` for every run of 8 and more characters that is also one of a secret, or of its Base64 (of
 * `Bearer <key>` too, wherever the key begins in it). Some services quote the first characters of a key that
 * they refuse.
 */
export function withoutKeyParts(words: string, secrets: readonly string[]): string {
  const runs = new Set(secrets.flatMap(formsOf).flatMap(runsOf));
  if (runs.size === 0) return words;
  let shown = '';
  let from = 0;
  for (let at = 0; at + runMin <= words.length; at += 1) {
    if (!runs.has(words.slice(at, at + runMin))) continue;
    shown += words.slice(from, at) + ellipsis;
    while (runs.has(words.slice(at, at + runMin))) at += 1;
    from = at + runMin - 1;
    at = from - 1;
  }
  return shown + words.slice(from);
}

function runsOf(form: string): string[] {
  const count = Math.max(0, form.length - runMin + 1);
  return Array.from({ length: count }, (_, at) => form.slice(at, at + runMin));
}

/** Base64 writes three bytes as four signs: a text has three forms, by the place where it begins. */
function formsOf(secret: string): string[] {
  const encoded = ['', ' ', '  '].flatMap((before) => {
    const bytes = Buffer.from(`${before}${secret}`);
    // Signs that hang on other bytes than those of the secret are left out.
    const first = Math.ceil((before.length * 4) / 3);
    const last = Math.floor((bytes.length * 8) / 6);
    return (['base64', 'base64url'] as const).map((kind) =>
      bytes.toString(kind).slice(first, last),
    );
  });
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret.toWellFormed()),
    ...encoded,
  ];
}
