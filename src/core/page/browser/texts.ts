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

/** Formats the time from NotificationDate to receipt; null without the date. */
export function delayText(notificationDate: string | null, receivedAt: string): string | null {
  if (notificationDate === null) return null;
  return spanText(Math.max(0, (Date.parse(receivedAt) - Date.parse(notificationDate)) / 1_000));
}

/** `06:31:53` of an ISO time, with the date if that is not today's. */
export function timeText(iso: string, today: string): string {
  return iso.startsWith(today) ? iso.slice(11, 19) : iso.slice(5, 19).replace('T', ' ');
}

/** A notification in the live list. */
export interface LiveFacts {
  subscription: string | null;
  notificationDate: string | null;
  receivedAt: string;
  cells: Record<'type' | 'tile' | 'cloud' | 'place', string | null>;
}

/** Columns of the live list after the name of the product. Narrow lists leave out those of a low rank. */
export const liveFacts: readonly {
  title: string;
  class: string;
  text(row: LiveFacts): string | null;
}[] = [
  { title: 'place', class: 'place', text: ({ cells }) => cells.place },
  { title: 'cloud', class: 'num cloud', text: ({ cells }) => cells.cloud },
  { title: 'type', class: 'rank-2', text: ({ cells }) => cells.type },
  { title: 'tile/orbit', class: 'tight rank-1', text: ({ cells }) => cells.tile },
  {
    title: 'delay',
    class: 'num rank-1',
    text: (row) => delayText(row.notificationDate, row.receivedAt),
  },
  { title: 'subscription', class: 'rank-1', text: ({ subscription }) => subscription },
];

/** Colours of the events of notifications. */
export const eventTones: Readonly<Record<string, 'good' | 'note' | 'warn'>> = {
  created: 'good',
  modified: 'note',
  deleted: 'warn',
};

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
