import { describe, expect, it } from 'vitest';
import {
  countriesTold,
  nearWords,
  overWords,
  regionWords,
} from '../../../src/summary/facts/place-words.ts';
import { near, place } from './places.ts';

describe('a place in words', () => {
  it.each([
    [place({ Poland: 1 }), 'Poland', 'over Poland'],
    [place({}, { 'Baltic Sea': 1 }), 'the Baltic Sea', 'over the Baltic Sea'],
    [
      place({ Poland: 0.7, Germany: 0.2 }, { 'Baltic Sea': 0.1 }),
      'mostly Poland, with parts of Germany and the Baltic Sea',
      'mostly over Poland, with parts of Germany and the Baltic Sea',
    ],
    [
      place({ Chile: 0.1 }, { 'South Pacific Ocean': 0.9 }),
      'mostly the South Pacific Ocean, with a small part of Chile',
      'mostly over the South Pacific Ocean, with a small part of Chile',
    ],
    [
      place({ Mauritania: 0.05, Senegal: 0.04 }, { 'North Atlantic Ocean': 0.91 }),
      'mostly the North Atlantic Ocean, with small parts of Mauritania and Senegal',
      'mostly over the North Atlantic Ocean, with small parts of Mauritania and Senegal',
    ],
    [
      place({ Croatia: 0.4, Italy: 0.3, Slovenia: 0.15, Austria: 0.1, Hungary: 0.05 }),
      'parts of Croatia, Italy, Slovenia, Austria and others',
      'over parts of Croatia, Italy, Slovenia, Austria and others',
    ],
    [
      place({ Russia: 0.7 }, { 'Arctic Ocean': 0.1, 'Kara Sea': 0.1 }),
      'mostly Russia, with small parts of the Arctic Ocean, the Kara Sea and others',
      'mostly over Russia, with small parts of the Arctic Ocean, the Kara Sea and others',
    ],
    [place({ Russia: 0.9 }), 'mostly Russia', 'mostly over Russia'],
    [place({}), null, null],
  ])('tells the regions of %o', (where, region, over) => {
    expect(regionWords(where)).toBe(region);
    expect(overWords(where)).toBe(over);
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
    expect(regionWords(place({ [name]: 1 }))).toBe(words);
  });

  it('names the places within, each with its country unless that was told', () => {
    const where = place({ Switzerland: 0.7, Italy: 0.3 }, {}, [
      near('Bern', 'Switzerland'),
      near('Bergamo', 'Italy'),
    ]);
    expect(nearWords(where)).toEqual({
      within: 'Bern (Switzerland) and Bergamo (Italy)',
      nearest: null,
    });
    expect(nearWords(where, ['Switzerland'])?.within).toBe('Bern and Bergamo (Italy)');
    expect(nearWords(where, countriesTold(where))?.within).toBe('Bern and Bergamo');
    expect(nearWords(place({ Italy: 1 }))).toBeNull();
  });

  it.each([
    [264, 'south-east', 'about 260 km south-east of Ushuaia (Argentina)'],
    [7, 'north', 'less than 10 km north of Ushuaia (Argentina)'],
    [1234, null, 'about 1,230 km from Ushuaia (Argentina)'],
  ])('tells how far the nearest one is: %s km %s', (distanceKm, direction, words) => {
    const one = near('Ushuaia', 'Argentina', distanceKm, direction);
    expect(nearWords(place({}, { 'Scotia Sea': 1 }, [one]))).toEqual({
      within: null,
      nearest: words,
    });
  });
});
