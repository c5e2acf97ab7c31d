/** What a FilterParam must be for the sandbox to take it: quotes, parentheses, known names. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkFilter } from '../../src/sandbox/account/filter-check.ts';
import { SubscriptionRefusal } from '../../src/sandbox/account/subscription-refusal.ts';
import type { NotificationEvent } from '../../src/sandbox/delivery/notification.ts';

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';

const created: NotificationEvent[] = ['created'];
const deleted: NotificationEvent[] = ['deleted'];
const cloudy =
  "Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and att/OData.CSC.DoubleAttribute/Value le 40)";

describe('a filter is taken', () => {
  it.each([
    '',
    '   ',
    "Name eq 'it''s (one) of foo'",
    "Name eq ''",
    "startswith(NAME,'S2') and COLLECTION/NAME ne 'X' or not (online EQ true)",
    'ContentDate/Start gt 2024-09-01 and OriginDate le 2024-09-01T00:00:00.000+01:00',
    "not(contains(Name,'a'))and(PublicationDate lt 2024-09-01T00:00:00Z)",
    cloudy,
    "attributes/OData.CSC.StringAttribute/any(i0:i0/Name eq 'productType' and i0/Value eq 'L1G')",
    "OData.CSC.Intersects(Footprint=geography'SRID=4326;POINT(4 50)')",
    "OData.CSC.Intersects(area = geography'SRID=4326;POLYGON ((4 50,5 50,5 51,4 50))')",
    "Attributes/OData.CSC.IntegerAttribute/any(att:att/Name eq 'x' and att/Value gt -5)",
  ])('%j', (filter) => {
    expect(() => checkFilter(filter, created)).not.toThrow();
  });

  it.each(['PublicationDate', 'ModificationDate', 'Online'])(
    'with %s only for what is there',
    (field) => {
      expect(() => checkFilter(`${field} eq 1`, ['created', 'modified'])).not.toThrow();
      expect(() => checkFilter(`${field} eq 1`, deleted)).toThrow(`Invalid field: ${field}`);
      expect(() => checkFilter(`${field} eq 1`, ['created', 'deleted'])).toThrow(field);
    },
  );

  it.each(['DeletionDate', 'DeletionCause'])('with %s only for what is deleted', (field) => {
    expect(() => checkFilter(`${field} eq 1`, deleted)).not.toThrow();
    expect(() => checkFilter(`${field} eq 1`, created)).toThrow(`Invalid field: ${field}`);
  });

  it('when the real service takes it', (context) => {
    if (missing) context.skip(missing);
    const text = readFileSync(new URL('filters-valid.json', fixtures), 'utf8');
    const filters: { entity: string; filter: string }[] = JSON.parse(text);
    expect(filters.length).toBeGreaterThan(50);
    for (const { entity, filter } of filters) {
      const events = entity === 'DeletedProducts' ? deleted : created;
      expect(() => checkFilter(filter, events), filter).not.toThrow();
    }
  });
});

describe('a filter is refused', () => {
  it.each([
    ["Name eq 'x", 'Unbalanced quotes'],
    ["Name eq 'it's'", 'Unbalanced quotes'],
    ["(Name eq 'x'", 'Unbalanced parentheses'],
    ["Name eq 'x')(", 'Unbalanced parentheses'],
    [cloudy.slice(0, -1), 'Unbalanced parentheses'],
    ["foo eq 'bar'", 'Invalid field: foo'],
    ["Name eq 'x' and Collection/name/x eq 'y'", 'Invalid field: Collection/name/x'],
    ['Collection/Name eq SENTINEL-2', 'Invalid field: SENTINEL-2'],
    ['BurstId eq 15804', 'Invalid field: BurstId'],
    ["substringof('IW_GRDH',Name)", 'Invalid function: substringof'],
    ["OriginDate gt datetime'2024-04-29T07:33:00.000'", 'Invalid field: datetime'],
    ["Collection/Name in ('SENTINEL-1')", 'Invalid function: in'],
    ['att/Name eq 1', 'Invalid field: att/Name'],
    ["OData.CSC.Intersects(zone=geography'SRID=4326;POINT(4 50)')", 'Invalid argument: zone'],
  ])('%s: %s', (filter, problem) => {
    const check = () => checkFilter(filter, created);
    expect(check).toThrow(SubscriptionRefusal);
    expect(check).toThrow(`Invalid filter: ${problem}`);
  });
});
