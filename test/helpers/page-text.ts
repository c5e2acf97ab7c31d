/** The text of a page. */

const entities: Readonly<Record<string, string>> = {
  ...{ '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' },
};

/** Returns the text of the main column, with single blanks. */
export function textOf(page: string): string {
  const main = page.slice(page.indexOf('<main'), page.indexOf('</main>'));
  return main
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(?:lt|gt|quot|amp|#39);/g, (entity) => entities[entity] ?? '')
    .replaceAll(/\s+/g, ' ');
}
