/** What a filter says of a record that lacks parts: only what holds whatever these would have said. */
import { expect, it } from 'vitest';
import { parseFilter } from '../../../src/filter/parse.ts';
import { compileVerdict } from '../../../src/reconcile/catalogue-listing.ts';

const cloudy =
  "Attributes/OData.CSC.DoubleAttribute/any(a:a/Name eq 'cloudCover' and a/OData.CSC.DoubleAttribute/Value gt 50)";
const somewhere = "OData.CSC.Intersects(area=geography'SRID=4326;POINT(4 50)')";

/** Neither Online nor PublicationDate; a cause that is known to be none; no attributes and no place. */
const deleted = {
  Name: 'S2A_MSIL2A_1.SAFE',
  ContentDate: { Start: '2026-05-01T00:00:00Z' },
  DeletionCause: null,
  Attributes: [],
  Footprint: null,
};
const bare = { Name: 'S2A_MSIL2A_1.SAFE' };
const unnamed = { Name: 'of_a_kind_that_nobody_knows.nc', Attributes: [] };

it.each<[filter: string, ofDeleted: boolean | null, ofBare: boolean | null]>([
  ['Online eq true', null, null],
  ['Online ne true', null, null],
  ['not (Online eq true)', null, null],
  ["Online eq true and contains(Name,'S2B')", false, false],
  ["Online eq true and contains(Name,'S2A')", null, null],
  ["contains(Name,'S2A') or Online eq true", true, true],
  ["not (Online eq true or contains(Name,'S2A'))", false, false],
  ["not (Online eq true and contains(Name,'S2B'))", true, true],
  ["contains(Name,'S2A') and not contains(Name,'S2B')", true, true],
  ["DeletionCause eq 'Other'", false, null],
  ["DeletionCause ne 'Other'", true, null],
  ['ContentDate/Start ge 2026-01-01', true, null],
  ['PublicationDate ge 2026-01-01', null, null],
  ["Collection/Name eq 'SENTINEL-2'", true, true],
  [cloudy, false, null],
  [`not ${cloudy}`, true, null],
  [somewhere, false, null],
])('%s', (filter, ofDeleted, ofBare) => {
  const verdictOf = compileVerdict(parseFilter(filter).tree);
  expect([verdictOf(deleted), verdictOf(bare)]).toEqual([ofDeleted, ofBare]);
});

it.each([
  ["Collection/Name eq 'CLMS'", null],
  ["Collection/Name ne 'SENTINEL-2'", null],
  ["Collection/Name eq 'CLMS' or contains(Name,'nobody')", true],
  ["Collection/Name eq 'CLMS' and contains(Name,'S2A')", false],
])('of a record whose collection cannot be told: %s', (filter, verdict) => {
  expect(compileVerdict(parseFilter(filter).tree)(unnamed)).toBe(verdict);
});
