/** Knows the names of the map, to recognize them in a text. */
import { type City, suburbs } from './cities.ts';
import type { Countries } from './countries.ts';
import { otherCountryNames } from './country-names.ts';
import type { Seas } from './seas.ts';

/** Tells whether words are the whole name of a place; accents and apostrophes may be left out. */
export function openPlaceNames({
  countries,
  seas,
  cities,
}: {
  countries: Pick<Countries, 'names'>;
  seas: Pick<Seas, 'names'>;
  cities: readonly Pick<City, 'name' | 'country'>[];
}): (lowerCaseWords: string) => boolean {
  const names = new Set<string>();
  const add = (name: string) => names.add(spelled(name));
  for (const name of [...countries.names, ...otherCountryNames, ...seas.names, ...suburbs])
    add(name);
  for (const { name, country } of cities) {
    add(name);
    add(country);
  }
  return (words) => names.has(spelled(words));
}

/** Without what people leave out or write in several ways. */
function spelled(name: string): string {
  const letters = name.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();
  return letters
    .replaceAll(/['’‘ʻ`.,()]/g, '')
    .replaceAll(/[-–\s]+/g, ' ')
    .trim();
}
