/** Finds the dates in a body, in the three forms that records and names use, and moves them by whole days. */

/**
 * Where dates stand in a text, three numbers for each: byte offset, form, days since 1970. A plain
 * list, because a day of products has about a million of them.
 */
export type DatePlaces = Int32Array;

/** Times of the day stay as they are, so that a moved text is as long as before. */
const forms = [
  { pattern: /20\d\d-\d\d-\d\d(?=T)/g, separator: '-' },
  { pattern: /20\d{6}(?=T\d{6})/g, separator: '' },
  { pattern: /20\d\d\/\d\d\/\d\d(?=\/)/g, separator: '/' },
] as const;

const dayMs = 86_400_000;

/** Finds them all; the text is ASCII. */
export function findDates(bytes: Buffer): DatePlaces {
  const text = bytes.toString('latin1');
  const places = forms.flatMap(({ pattern }, form) =>
    [...text.matchAll(pattern)].flatMap(({ 0: date, index }) => [index, form, dayOf(date)]),
  );
  return Int32Array.from(places);
}

/** Writes the dates into a copy of the text, moved by so many days. */
export function writeDates(target: Buffer, places: DatePlaces, days: number): void {
  if (days === 0) return;
  for (let at = 0; at < places.length; at += 3) {
    const [offset = 0, form = 0, day = 0] = places.subarray(at, at + 3);
    target.write(dateText(form, day + days), offset, 'latin1');
  }
}

function dayOf(date: string): number {
  const digits = date.replaceAll(/\D/g, '');
  const [year, month, day] = [digits.slice(0, 4), digits.slice(4, 6), digits.slice(6)];
  return Date.UTC(Number(year), Number(month) - 1, Number(day)) / dayMs;
}

const texts: string[][] = forms.map(() => []);

function dateText(form: number, day: number): string {
  const known = texts[form]?.[day];
  if (known !== undefined) return known;
  const iso = new Date(day * dayMs).toISOString().slice(0, 10);
  const text = iso.replaceAll('-', forms[form]?.separator ?? '');
  if (texts[form] !== undefined) texts[form][day] = text;
  return text;
}
