/** Texts that server and browser write in the same way. */

/** Formats a duration with its two largest digits: `45 s`, `12 min`, `5 h`, `3 d`, `7.4 years`. */
export function spanText(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 100) return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
  if (seconds < 6_000) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Number((seconds / 3_600).toFixed(seconds < 36_000 ? 1 : 0))} h`;
  const days = Math.round(seconds / 86_400);
  return days < 2 * 365.25 ? `${days} d` : `${(days / 365.25).toFixed(1)} years`;
}

/** `just now`, `12 s ago`, `in 3 h`. */
export function ageText(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole === 0) return 'just now';
  return whole < 0 ? `in ${spanText(-whole)}` : `${spanText(whole)} ago`;
}

/** Returns an argument of a command, quoted for a shell if necessary. */
export function shellText(argument: string): string {
  const text = printable(argument.replaceAll(/\s/g, ' '));
  if (/^[\w./:=,@%+-]+$/.test(text)) return text;
  return /["$`\\!]/.test(text) ? `'${text.replaceAll("'", String.raw`'\''`)}'` : `"${text}"`;
}

/**
 * Escapes control characters, which could move the cursor or change colours, and marks that change the direction of
 * text: `\u202e`.
 */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u2028\u2029]/gu,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
