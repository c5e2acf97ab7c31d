/** A filter is told in plain words. */
import { describe, expect, it } from 'vitest';
import { describeFilter } from '../../src/filter/describe.ts';
import { parseFilter } from '../../src/filter/parse.ts';

const words = (text: string) => describeFilter(parseFilter(text).tree);
const place = (wkt: string) => words(`OData.CSC.Intersects(area=geography'SRID=4326;${wkt}')`);

describe('the words for a filter', () => {
  it('have one line for each part, indented within its group', () => {
    expect(
      words(
        "Collection/Name eq 'SENTINEL-2' and Attributes/OData.CSC.DoubleAttribute/any(a:a/Name eq 'cloudCover' and a/Value lt 20) and not (contains(Name,'T32') or Online eq false)",
      ),
    ).toEqual([
      'all of:',
      '  collection is SENTINEL-2',
      '  cloudCover is below 20',
      '  not:',
      '    any of:',
      '      name contains T32',
      '      product is not online',
    ]);
  });

  it.each([
    ["Name ne 'a'", 'name is not a'],
    ["Name eq ''", "name is ''"],
    ["Name eq ' a'", "name is ' a'"],
    ["Name eq 'a\u001b'", 'name is a\ufffd'],
    ["Name in ('a','b')", 'name is one of a, b'],
    ["startswith(Name,'a')", 'name begins with a'],
    ["endswith(Name,'a')", 'name ends with a'],
    ['Online ne true', 'product is not online'],
    ['ContentDate/Start ge 2024-05-01', 'sensing start is at or after 2024-05-01 00:00:00 UTC'],
    [
      'ContentDate/End lt 2024-05-01T10:00:00.5Z',
      'sensing end is before 2024-05-01 10:00:00.5 UTC',
    ],
    ["PublicationDate gt '2024-05-01'", 'publication is after 2024-05-01'],
    ['ModificationDate le 2024-05-01', 'last modification is at or before 2024-05-01 00:00:00 UTC'],
    ["DeletionCause eq 'Reprocessed product'", 'cause of deletion is Reprocessed product'],
    ["constructor eq 'a'", 'constructor is a'],
    [
      "Attributes/OData.CSC.StringAttribute/any(a:a/Name eq 'relativeOrbitNumber' and a/OData.CSC.IntegerAttribute/Value ge 15)",
      'relativeOrbitNumber is at least 15',
    ],
    [
      "Attributes/OData.CSC.DateTimeOffsetAttribute/any(a:a/Name eq 'processingDate' and a/Value gt 2023-02-01T00:00:00Z)",
      'processingDate is after 2023-02-01 00:00:00 UTC',
    ],
  ])('are plain: %s', (text, line) => {
    expect(words(text)).toEqual([line]);
  });

  it.each([
    ['POINT(-0.53195 28.65)', 'place meets POINT 0.532°W 28.65°N'],
    ['POINT(0 -5)', 'place meets POINT 0° 5°S'],
    [
      'POLYGON((4 50,5 50,5 51,4 51,4 50))',
      'place meets POLYGON of 5 points between 4°E 50°N and 5°E 51°N',
    ],
    ['MULTIPOINT((1 2),(3 4))', 'place meets MULTIPOINT of 2 points between 1°E 2°N and 3°E 4°N'],
    [
      'POLYGON((170 10,-170 10,-170 20,170 20,170 10))',
      'place meets POLYGON of 5 points between 170°E 10°N and 170°W 20°N, across the antimeridian',
    ],
    [
      'POLYGON((170 10,180 10,180 20,170 20,170 10))',
      'place meets POLYGON of 5 points between 170°E 10°N and 180°E 20°N',
    ],
    [
      'POLYGON((-180 -90,180 -90,180 90,-180 90,-180 -90))',
      'place meets POLYGON of 5 points between 180°W 90°S and 180°E 90°N',
    ],
  ])('say where a place is: %s', (wkt, line) => {
    expect(place(wkt)).toEqual([line]);
  });
});
