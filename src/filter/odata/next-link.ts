/** The link to the next page, in the recorded form: the query as it was asked, and where to go on. */

/**
 * Repeats the parameters in the order in which they came, in the form of HTML forms (a blank is `+`),
 * with `$skip` or `$skiptoken` in its place or at the end (fixtures, lists).
 */
export function nextLink(
  asked: URL,
  goOn: { readonly skip: number } | { readonly skiptoken: string },
): string {
  const [name, value] =
    'skip' in goOn ? ['$skip', String(goOn.skip)] : ['$skiptoken', goOn.skiptoken];
  const params = new URLSearchParams(asked.search);
  // A token stands for all that was passed over before it.
  if (name === '$skiptoken') params.delete('$skip');
  params.set(name, value);
  const query = [...params].map(([key, text]) => `${encode(key)}=${encode(text)}`).join('&');
  return `${asked.origin}${asked.pathname}?${query}`;
}

/** As Python's `quote_plus`, which the catalogue seems to use. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}
