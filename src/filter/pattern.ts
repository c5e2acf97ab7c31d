/** Patterns of `LIKE` in CQL2: `%` is any text, `_` any character; a backslash escapes the following character. */

/** Wildcards; every other part is a literal character. */
const anyText = Symbol('%');
const anyCharacter = Symbol('_');

type Part = string | typeof anyText | typeof anyCharacter;

function partsOf(pattern: string): Part[] {
  return (pattern.match(/\\.|[^\\]/gsu) ?? []).map((written) => {
    if (written === '%') return anyText;
    if (written === '_') return anyCharacter;
    return written.replace(/^\\/, '');
  });
}

/** Returns the literal texts between wildcards, in order; empty ones between neighbouring wildcards. */
export function literalsIn(pattern: string): string[] {
  const texts = [''];
  for (const part of partsOf(pattern)) {
    if (typeof part === 'string') texts.push(`${texts.pop()}${part}`);
    else texts.push('');
  }
  return texts;
}

/** Compiles a pattern. The time of a test is proportional to the lengths of pattern and text, at most their product. */
export function compilePattern(pattern: string): (text: string) => boolean {
  const parts = partsOf(pattern);
  return (text) => {
    const characters = Array.from(text);
    let [at, next] = [0, 0];
    // The last `%`, and the end of the text that it stands for.
    let [open, openTo] = [-1, 0];
    while (at < characters.length) {
      const part = parts[next];
      if (part === anyText) {
        [open, openTo] = [next, at];
        next += 1;
      } else if (part === anyCharacter || part === characters[at]) {
        [at, next] = [at + 1, next + 1];
      } else if (open >= 0) {
        openTo += 1;
        [at, next] = [openTo, open + 1];
      } else return false;
    }
    return parts.slice(next).every((part) => part === anyText);
  };
}

/** Converts to a pattern of `GLOB` in SQLite. */
export function globOf(pattern: string): string {
  return partsOf(pattern)
    .map((part) => {
      if (part === anyText) return '*';
      if (part === anyCharacter) return '?';
      return typeof part === 'string' && /[*?[]/.test(part) ? `[${part}]` : part;
    })
    .join('');
}
