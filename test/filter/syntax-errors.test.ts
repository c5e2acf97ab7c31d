/** Texts that are no filters: each is refused at the exact place, with words that help. */
import { describe, expect, it } from 'vitest';
import { type FilterFinding, FilterSyntaxError } from '../../src/filter/finding.ts';
import { parseFilter } from '../../src/filter/parse.ts';

function faultOf(text: string): FilterFinding {
  try {
    parseFilter(text);
  } catch (error) {
    if (error instanceof FilterSyntaxError) return error.finding;
    throw error;
  }
  throw new Error(`was read: ${text}`);
}

/** The place is marked: `Name «==» 'a'`. Two marks side by side are a place between characters. */
function expectFault(marked: string, code: string, words: RegExp): void {
  const start = marked.indexOf('«');
  const end = marked.indexOf('»') - 1;
  const fault = faultOf(marked.replace('«', '').replace('»', ''));
  expect(fault).toMatchObject({ severity: 'error', code, start, end });
  expect(`${fault.message} | ${fault.expected} | ${fault.hint}`).toMatch(words);
}

const any = 'Attributes/OData.CSC.StringAttribute/any';
const place = "OData.CSC.Intersects(area=geography'SRID=4326;";

describe('a slip is named', () => {
  it.each([
    ["Name «==» 'a'", 'wrong-operator', /Write `eq`/],
    ["Name «=» 'a'", 'wrong-operator', /Write `eq`/],
    ["Name «!=» 'a'", 'wrong-operator', /Write `ne`/],
    ["Name «<>» 'a'", 'wrong-operator', /Write `ne`/],
    ['ContentDate/Start «<» 2024-01-01', 'wrong-operator', /Write `lt`/],
    ['ContentDate/Start «<=» 2024-01-01', 'wrong-operator', /Write `le`/],
    ['ContentDate/Start «>» 2024-01-01', 'wrong-operator', /Write `gt`/],
    ['ContentDate/Start «>=»2024-01-01', 'wrong-operator', /Write `ge`/],
    ["Name eq 'a' «&&» Name eq 'b'", 'wrong-operator', /Write `and`/],
    ["Name eq 'a' «||» Name eq 'b'", 'wrong-operator', /Write `or`/],
    ["«!»contains(Name,'a')", 'wrong-operator', /Write `not`/],
    ['Name eq «"a"»', 'wrong-quotes', /single quotes.*`'a'`/],
    ['Name eq «“a”»', 'wrong-quotes', /single quotes.*`'a'`/],
    ['Name eq «‘a’»', 'wrong-quotes', /single quotes.*`'a'`/],
    ['Name eq «"»a', 'wrong-quotes', /single quotes/],
    ["Name eq «'»a", 'unclosed-text', /never closed/],
    ["Name eq 'a«\0»b'", 'wrong-character', /NUL character.*Leave it out/],
    ["Name eq 'a'«\0»", 'wrong-character', /NUL character/],
    ['Collection/Name eq «SENTINEL-2»', 'unquoted-text', /single quotes: `'SENTINEL-2'`/],
    [
      'Name eq «79d7807b-66e5-41d2-a586-1628eb82c3e0»',
      'unquoted-text',
      /single quotes: `'79d7807b/,
    ],
    ['Id eq «79d7807b-66e5»', 'unquoted-text', /single quotes: `'79d7807b-66e5'/],
    ['contains(Name,«GRD»)', 'unquoted-text', /single quotes: `'GRD'`/],
    ['ContentDate/Start lt «ContentDate/End»', 'not-comparable', /compared with a value/],
    ["Name eq 'a' «Name» eq 'b'", 'missing-joint', /`and` or `or` is missing before `Name`/],
    ["(Name eq 'a') «(»Name eq 'b')", 'missing-joint', /is missing/],
    ["contains(Name,'a') «eq» true", 'unexpected', /leave out the comparison/],
    ["Name eq 'a' and«»", 'missing-condition', /A condition is missing/],
    ["Name eq 'a' and «or» Name eq 'b'", 'missing-condition', /A condition is missing/],
    ["«and» Name eq 'a'", 'missing-condition', /A condition is missing/],
    ['(«)»', 'missing-condition', /A condition is missing/],
    ["not «not» (Name eq 'a')", 'unexpected', /parentheses: not \(not/],
    ["(Name eq 'a'«»", 'missing-parenthesis', /character 1 is never closed/],
    ["Name eq 'a'«)»", 'missing-parenthesis', /No parenthesis is open/],
    ["«'a'» eq Name", 'missing-condition', /field first/],
    ['Online«»', 'missing-operator', /`eq`, `ne`/],
    ["Name «like» 'a%'", 'missing-operator', /contains\(Name/],
    ['Name eq«»', 'missing-value', /A value is missing/],
    ['Name eq «null»', 'missing-value', /null is not a value/],
    ["Name in «'a'»", 'unexpected', /\('a','b'\)/],
    ["Name in ('a'«»", 'missing-parenthesis', /`,` or `\)`/],
    ["contains(«'a'»,Name)", 'unexpected', /field comes first/],
    ["Name eq 'a'«;»", 'wrong-character', /without a semicolon/],
    ["Name«\u00a0»eq 'a'", 'wrong-character', /U\+00A0.*plain blank/],
    ["Name eq 'a' «\u200b»", 'wrong-character', /U\+200B/],
    ["Name eq 'a' «😀»", 'wrong-character', /cannot stand here/],
    ['ContentDate/Start gt «2024-02-30»', 'invalid-date', /calendar/],
    ['ContentDate/Start gt «9999-02-29»', 'invalid-date', /calendar/],
    ['ContentDate/Start gt «2024-05-01T10:00Z»', 'invalid-date', /minutes and seconds/],
    ['ContentDate/Start gt «2024-05-01T10:00:00.1234567890»', 'invalid-date', /date such as/],
    ['Name eq «1.2.3»', 'invalid-number', /not a number/],
    ['Name eq «1e999»', 'invalid-number', /beyond/],
    ['Name eq 1 «%»', 'wrong-character', /cannot stand here/],
  ])('%s', expectFault);
});

describe('what is no filter of this catalogue is known for what it is', () => {
  it.each([
    ["«$filter=»Name eq 'a'", 'not-a-filter', /Leave out `\$filter=`/],
    ["«https://example.org/odata/v1/Products?$filter=»Name eq 'a'", 'not-a-filter', /Leave out/],
    ["Name«%20»eq%20'a'", 'not-a-filter', /Decode/],
    ["Name«+»eq+'a'", 'not-a-filter', /Decode/],
    ["Name eq 'a'«&»$top=10", 'not-a-filter', /Leave out all that follows/],
    ["«substringof»('a',Name)", 'retired-form', /contains\(Name,'…'\)/],
    ["ContentDate/Start gt «datetime'2024-04-29T07:33:00.000'»", 'retired-form', /2024-04-29T07/],
    ['«year»(ContentDate/Start) eq 2024', 'unknown-function', /ge 2024-01-01/],
    ['«platformname:»Sentinel-2', 'retired-form', /Collection\/Name eq 'SENTINEL-2'/],
    ['«ingestiondate:»[2020-01-01T00:00:00Z TO NOW]', 'retired-form', /PublicationDate gt/],
    ['«footprint:»"Intersects(POINT(1 2))"', 'retired-form', /OData.CSC.Intersects\(area/],
    ['«cloudcoverpercentage:»[0 TO 10]', 'retired-form', /'cloudCover'/],
    ["«tolower»(Name) eq 'a'", 'unknown-function', /not a function/],
    ["«geo.intersects»(Footprint,geography'POINT(1 2)')", 'unknown-function', /OData.CSC.Inter/],
  ])('%s', expectFault);
});

describe('a condition on an attribute is refused', () => {
  const code = 'invalid-attribute-condition';
  it.each([
    [
      `${any}(att:att/Name eq 'a'«)»`,
      code,
      /value is missing.*and att\/OData.CSC.StringAttribute\/Val/,
    ],
    [`${any}(att:«att/Value» eq 'a' and att/Name eq 'a')`, code, /name first/],
    [`${any}(att:att/Name eq 'a' and «contains»(att/Value,'a'))`, code, /works on fields/],
    [`${any}(att:«b»/Name eq 'a' and att/Value eq 'a')`, code, /variable here is `att`, not `b`/],
    [`${any}(att:att/Name «ne» 'a' and att/Value eq 'a')`, code, /only be compared with `eq`/],
    [`${any}(att:att/Name eq «a» and att/Value eq 'a')`, 'unquoted-text', /single quotes: `'a'`/],
    [
      `${any}(att:att/Name eq 'a' and att/Value eq 'a' «and» att/Value eq 'b')`,
      code,
      /another any/,
    ],
    [`${any}(att:att/Name eq 'a' and att/Value eq 'a'«»`, 'missing-parenthesis', /never closed/],
    [`${any}(«att/Name» eq 'a' and att/Value eq 'a')`, 'unexpected', /with a colon/],
    [`${any}(att«/»Name eq 'a')`.replace('«/»', '«,»'), 'unexpected', /`:`/],
    ["«Attributes/OData.CSC.FloatAttribute/any»(a:a/Name eq 'a')", code, /Double, Integer/],
    ["«Attributes/any»(a:a/Name eq 'a')", code, /StringAttribute\/any/],
  ])('%s', expectFault);
});

describe('a geometry is refused', () => {
  it.each([
    [`${place}«[1,2»,3,4]')`.replace('«[1,2»', '«[1»,2'), 'invalid-wkt', /POINT, POLYGON/],
    [`${place}POLYGON «[1»,2]')`, 'invalid-wkt', /`\(`/],
    [`${place}«LINESTRING»(1 2,3 4)')`, 'invalid-wkt', /not a geometry that the catalogue takes/],
    [`${place}«CIRCLE»(1 2)')`, 'invalid-wkt', /POINT, POLYGON/],
    [`${place}«BLOB»(1 2)')`, 'invalid-wkt', /not well-known text/],
    [`${place}POINT «EMPTY»')`, 'invalid-wkt', /empty geometry/],
    [`${place}POINT «Z» (1 2 3)')`, 'invalid-wkt', /two numbers/],
    [`${place}«POINTZ»(1 2 3)')`, 'invalid-wkt', /two numbers/],
    [`${place}POINT(1 2 «3»)')`, 'invalid-wkt', /third/],
    [`${place}POINT(1«)»')`, 'invalid-wkt', /latitude is missing/],
    [`${place}POINT(«a» 2)')`, 'invalid-wkt', /a number \(longitude\)/],
    [`${place}POINT(1 «2x»)')`, 'invalid-wkt', /a number \(latitude\)/],
    [`${place}POINT(«1e999» 2)')`, 'invalid-wkt', /no number of degrees/],
    [`${place}POINT(1 2«'»)`, 'invalid-wkt', /ends too early/],
    [`${place}POINT(1 2)«)»')`, 'invalid-wkt', /closing quote/],
    [`${place}POINT(1 2)«''»')`, 'invalid-wkt', /closing quote/],
    [`${place}POLYGON((4 50,5 50,5 51,4 50),«4» 50)')`, 'invalid-wkt', /`\(`/],
    ["OData.CSC.Intersects(area=geography'«POINT»(1 2)')", 'invalid-wkt', /reference system/],
    ["OData.CSC.Intersects(area=geography'SRID=«EPSG:4326»;POINT(1 2)')", 'invalid-wkt', /4326/],
    ["OData.CSC.Intersects(«geography»'SRID=4326;POINT(1 2)')", 'unexpected', /`area=`/],
    ['OData.CSC.Intersects(area=«POINT»(1 2))', 'unexpected', /geography'SRID/],
    ["OData.CSC.Intersects(area=geography« »'SRID=4326;POINT(1 2)')", 'wrong-character', /blank/],
    [`${place}POINT(1 2)'«»`, 'missing-parenthesis', /`\)`/],
  ])('%s', expectFault);
});
