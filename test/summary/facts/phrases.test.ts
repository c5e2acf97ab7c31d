/** Formatting of values and places as text. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  areaPhrase,
  countPhrase,
  datePhrase,
  delayPhrase,
  durationPhrase,
  listPhrase,
  percentPhrase,
  sizePhrase,
} from '../../../src/summary/facts/phrases.ts';
import {
  countriesNamed,
  nearPhrase,
  overPhrase,
  regionPhrase,
} from '../../../src/summary/facts/place-phrases.ts';
import { near, place, us } from './found-product.ts';

const [secondUs, minuteUs, hourUs, dayUs] = [1e6, 60e6, 3600e6, 86_400e6];

describe('values as text', () => {
  it.each([
    [us('2024-05-20T10:15:59.999999Z'), '20 May 2024 10:15 UTC'],
    [us('2024-02-29T00:00:00Z'), '29 February 2024 00:00 UTC'],
    [us('1972-01-01T00:00:00Z'), '1 January 1972 00:00 UTC'],
    [us('1971-12-31T23:59:59Z'), null],
    [us('2100-01-01T00:00:00Z'), null],
    [Number.MAX_SAFE_INTEGER, null],
    [Number.NaN, null],
    [null, null],
  ])('write the date %s as %s', (value, words) => {
    expect(datePhrase(value)).toBe(words);
  });

  it.each([
    [29.297 * secondUs, '29 s'],
    [119.4 * secondUs, '119 s'],
    [119.6 * secondUs, '2 min'],
    [180 * secondUs, '3 min'],
    [59.6 * minuteUs, '1 h'],
    [4 * hourUs + 37 * minuteUs, '4 h 37 min'],
    [38 * hourUs, '38 h'],
    [48 * hourUs, '2 days'],
    [700.4 * dayUs, '700 days'],
    [730 * dayUs, '730 days'],
    [731 * dayUs, 'more than 2 years'],
    [3257 * dayUs, 'more than 8 years'],
    [0.4 * secondUs, null],
    [0, null],
    [-hourUs, null],
    [40_000 * dayUs, null],
  ])('write the duration %s as %s', (value, words) => {
    expect(durationPhrase(value)).toBe(words);
  });

  it('write a delay of hours as a reader computes it from the two dates', () => {
    const [from, to] = [us('2026-01-01T10:15:50Z'), us('2026-01-01T14:52:10Z')];
    expect([datePhrase(from), datePhrase(to)].map((text) => text?.slice(-9, -4))).toEqual([
      '10:15',
      '14:52',
    ]);
    expect(delayPhrase(from, to)).toBe('4 h 37 min');
    expect(delayPhrase(from, from + 46 * secondUs)).toBe('46 s');
    expect(delayPhrase(to, from)).toBeNull();
    expect(delayPhrase(null, to)).toBeNull();
    expect(delayPhrase(from, Number.MAX_SAFE_INTEGER)).toBeNull();
  });

  it.each([
    [1, '1 byte'],
    [999, '999 bytes'],
    [553_396, '553.4 kB'],
    [999_960, '1.0 MB'],
    [2_036_541_511, '2.0 GB'],
    [3.2e12, '3.2 TB'],
    [0, null],
    [-5, null],
    [1e16, null],
    [Number.NaN, null],
  ])('write the size %s as %s', (value, words) => {
    expect(sizePhrase(value)).toBe(words);
  });

  it.each([
    [12_056.4, '12,056 km²'],
    [99.96, '100 km²'],
    [8.44, '8.4 km²'],
    [0.01, null],
    [6e8, null],
  ])('write the area %s as %s', (value, words) => {
    expect(areaPhrase(value)).toBe(words);
  });

  it.each([
    [0, '0 %'],
    [0.04, 'less than 0.1 %'],
    [27.6736819182118, '27.7 %'],
    [12, '12.0 %'],
    [99.99, 'more than 99.9 %'],
    [100, '100 %'],
    [900, null],
    [-1, null],
    [Number.NaN, null],
  ])('write the share %s as %s', (value, words) => {
    expect(percentPhrase(value)).toBe(words);
  });

  it('mark thousands, and join lists', () => {
    expect([0, 999, 1000, 1_234_567].map(countPhrase)).toEqual(['0', '999', '1,000', '1,234,567']);
    expect(listPhrase([])).toBe('');
    expect(listPhrase(['a'])).toBe('a');
    expect(listPhrase(['a', 'b', 'c'])).toBe('a, b and c');
  });

  it('use singular and plural for any number', () => {
    const forms = [
      [datePhrase, /^\d{1,2} [A-Z][a-z]+ \d{4} \d\d:\d\d UTC$/],
      [durationPhrase, /^(?:\d+ s|\d+ min|\d+ h(?: \d+ min)?|[\d,]+ days|more than \d+ years)$/],
      [sizePhrase, /^(?:1 byte|\d+ bytes|\d{1,3}\.\d [kMGT]B)$/],
      [areaPhrase, /^(?:\d+\.\d|\d{1,3}(?:,\d{3})*) km²$/],
      [percentPhrase, /^(?:(?:less|more) than )?\d+(?:\.\d)? %$/],
    ] as const;
    fc.assert(
      fc.property(fc.oneof(fc.double(), fc.maxSafeInteger()), (value) => {
        for (const [inText, form] of forms) expect(inText(value) ?? '').toMatch(orNothing(form));
      }),
    );
  });
});

function orNothing(form: RegExp): RegExp {
  return new RegExp(`^$|${form.source}`);
}

describe('a place as text', () => {
  it.each([
    [place({ Poland: 1 }), 'Poland'],
    [place({}, { 'Baltic Sea': 1 }), 'the Baltic Sea'],
    [
      place({ Poland: 0.7, Germany: 0.2 }, { 'Baltic Sea': 0.1 }),
      'mostly Poland, with parts of Germany and the Baltic Sea',
    ],
    [
      place({ Chile: 0.1 }, { 'South Pacific Ocean': 0.9 }),
      'mostly the South Pacific Ocean, with a small part of Chile',
    ],
    [
      place({ Mauritania: 0.05, Senegal: 0.04 }, { 'North Atlantic Ocean': 0.91 }),
      'mostly the North Atlantic Ocean, with small parts of Mauritania and Senegal',
    ],
    [
      place({ Croatia: 0.4, Italy: 0.3, Slovenia: 0.15, Austria: 0.1, Hungary: 0.05 }),
      'parts of Croatia, Italy, Slovenia, Austria and others',
    ],
    [
      place({ Russia: 0.7 }, { 'Arctic Ocean': 0.1, 'Kara Sea': 0.1 }),
      'mostly Russia, with small parts of the Arctic Ocean, the Kara Sea and others',
    ],
    [place({ Russia: 0.9 }), 'mostly Russia'],
    [place({}), null],
  ])('lists the regions of %o', (where, region) => {
    expect(regionPhrase(where)).toBe(region);
    expect(overPhrase(where)).toBe(region?.replace(/^(?:mostly )?/, '$&over ') ?? null);
  });

  it.each([
    ['United States', 'the United States'],
    ['United Arab Emirates', 'the United Arab Emirates'],
    ['Netherlands', 'the Netherlands'],
    ['Central African Republic', 'the Central African Republic'],
    ['Democratic Republic of the Congo', 'the Democratic Republic of the Congo'],
    ['Faroe Islands', 'the Faroe Islands'],
    ['Bay of Biscay', 'the Bay of Biscay'],
    ['Gulf of Riga', 'the Gulf of Riga'],
    ['Strait of Gibraltar', 'the Strait of Gibraltar'],
    ['English Channel', 'the English Channel'],
    ['Sea of Azov', 'the Sea of Azov'],
    ['Skagerrak', 'the Skagerrak'],
    ['Río de la Plata', 'the Río de la Plata'],
    ['Turks and Caicos Islands', 'the Turks and Caicos Islands'],
    [
      'South Georgia and the South Sandwich Islands',
      'South Georgia and the South Sandwich Islands',
    ],
    ['Hudson Bay', 'Hudson Bay'],
    ['Lake Victoria', 'Lake Victoria'],
    ['Antarctica', 'Antarctica'],
    ['Dominica', 'Dominica'],
    ['Poland', 'Poland'],
  ])('names %s as %s', (name, words) => {
    expect(regionPhrase(place({ [name]: 1 }))).toBe(words);
  });

  it('names the places within, each with its country unless that was named', () => {
    const where = place({ Switzerland: 0.7, Italy: 0.3 }, {}, [
      near('Bern', 'Switzerland'),
      near('Bergamo', 'Italy'),
    ]);
    expect(nearPhrase(where)).toEqual({
      within: 'Bern (Switzerland) and Bergamo (Italy)',
      nearest: null,
    });
    expect(nearPhrase(where, ['Switzerland'])?.within).toBe('Bern and Bergamo (Italy)');
    expect(nearPhrase(where, countriesNamed(where))?.within).toBe('Bern and Bergamo');
    expect(nearPhrase(place({ Italy: 1 }))).toBeNull();
  });

  it.each([
    [264, 'south-east', 'about 260 km south-east of Ushuaia (Argentina)'],
    [7, 'north', 'less than 10 km north of Ushuaia (Argentina)'],
    [1234, null, 'about 1,230 km from Ushuaia (Argentina)'],
  ])('states the distance of the nearest place: %s km %s', (distanceKm, direction, words) => {
    const one = near('Ushuaia', 'Argentina', distanceKm, direction);
    expect(nearPhrase(place({}, { 'Scotia Sea': 1 }, [one]))).toEqual({
      within: null,
      nearest: words,
    });
  });
});
