/** The state of a page in its URL. */
import { describe, expect, it } from 'vitest';
import {
  isAbsolute,
  linkTo,
  navigationState,
  productLink,
  readPageState,
  sharedState,
} from '../../../src/core/page/page-state.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';

const nowUs = Date.UTC(2026, 4, 10, 12) * 1_000;
const hourUs = 3_600_000_000;

function read(search: string, back = '24h') {
  return readPageState(new URL(`http://localhost/live${search}`), { nowUs, back });
}

function refusal(search: string): string {
  try {
    read(search);
  } catch (error) {
    if (error instanceof AppError && error.code === 'invalid') return error.text;
  }
  throw new Error(`not refused: ${search}`);
}

describe('the state of a page', () => {
  it('is by default the period of the page until now', () => {
    expect(read('')).toEqual({
      ...{ since: undefined, until: undefined, subscription: undefined, event: undefined },
      ...{ filter: '', sinceUs: nowUs - 24 * hourUs, untilUs: nowUs },
    });
    expect(read('', '7d').sinceUs).toBe(nowUs - 168 * hourUs);
    // As a form without JavaScript sends it.
    expect(read('?since=&until=%20&subscription=&event=&filter=')).toEqual(read(''));
  });

  it.each([
    ['90m', nowUs - 1.5 * hourUs],
    ['24h', nowUs - 24 * hourUs],
    ['7d', nowUs - 168 * hourUs],
    ['2026-05-01', Date.UTC(2026, 4, 1) * 1_000],
    ['2026-05-01T12:00Z', Date.UTC(2026, 4, 1, 12) * 1_000],
    ['2026-05-01T12:00:00%2B02:00', Date.UTC(2026, 4, 1, 10) * 1_000],
  ])('starts at %s', (since, sinceUs) => {
    expect(read(`?since=${since}`)).toMatchObject({ sinceUs, untilUs: nowUs });
  });

  it('ends at a given time, at the latest now; the default period then ends there, too', () => {
    expect(read('?since=48h&until=24h')).toMatchObject({
      sinceUs: nowUs - 48 * hourUs,
      untilUs: nowUs - 24 * hourUs,
    });
    const untilUs = Date.UTC(2026, 4, 2) * 1_000;
    expect(read('?until=2026-05-02')).toMatchObject({ sinceUs: untilUs - 24 * hourUs, untilUs });
    expect(read('?until=2100-01-01').untilUs).toBe(nowUs);
  });

  it.each([
    ['?since=yesterday', '"yesterday" is not a time. Use ISO 8601'],
    ['?since=24x', '"24x" is not a time.'],
    ['?since=-1h', '"-1h" is not a time.'],
    ['?since=1e9h', '"1e9h" is not a time.'],
    ['?until=2026-13-01', '"2026-13-01" is not a time.'],
    ['?since=2026-02-30', '"2026-02-30" is not a time.'],
    ['?since=1h&until=2h', 'The period is empty'],
    ['?since=0h', 'The period is empty'],
    ['?since=2100-01-01', 'The period is empty'],
    ['?since=101d', 'longer than 100 days'],
    ['?since=999999d', 'longer than 100 days'],
    ['?since=1970-01-01', 'longer than 100 days'],
    ['?until=999999d', 'The period begins before 1970.'],
  ])('refuses %s with the reason', (search, reason) => {
    expect(refusal(search)).toContain(reason);
  });

  it('ignores an unknown event and parameters of other pages', () => {
    expect(read('?event=exploded&view=1,2&projection=arctic')).toEqual(read(''));
    expect(read('?event=deleted').event).toBe('deleted');
  });

  it('survives a link, whatever the texts contain', () => {
    const texts = [
      ...[
        'a',
        'Ä ö',
        "Name eq 'x&y=z#?'",
        '+ %2B %',
        '\u202e',
        'a:b,c/d',
        '"<script>',
        '\u{1f30d}',
      ],
      "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((1 2,3 4,5 6,1 2))')",
    ];
    for (const text of texts) {
      const given = {
        since: '7d',
        until: '1h',
        subscription: text,
        event: 'created',
        filter: text,
      };
      const link = linkTo('/live', given);
      expect(read(link.slice('/live'.length))).toMatchObject({ ...given });
      expect(link).toBe(linkTo('/live', { ...given, other: '', none: undefined, zero: null }));
      const id = decodeURIComponent(productLink(text).slice('/products/'.length));
      expect(id).toBe(text);
    }
  });

  it('passes period and subscription to other pages, but not the filter', () => {
    const shared = sharedState(read('?since=7d&subscription=alps&event=created&filter=Online'));
    expect(linkTo('/map', shared)).toBe('/map?since=7d&subscription=alps');
    expect(linkTo('/map', sharedState(read('')))).toBe('/map');
  });

  it('passes only a relative period to the navigation', () => {
    const linkOf = (search: string) => linkTo('/live', navigationState(read(search)));
    expect(linkOf('?since=7d&subscription=alps')).toBe('/live?since=7d&subscription=alps');
    const hour = '?since=2026-05-10T09:00Z&until=2026-05-10T10:00Z&subscription=alps';
    expect(linkOf(hour)).toBe('/live?subscription=alps');
    expect(
      [hour, '?since=7d', '?since=2d&until=1d', ''].map((one) => isAbsolute(read(one))),
    ).toEqual([true, false, true, false]);
  });
});
