/** The state of a page in its URL. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isAbsolute,
  linkTo,
  navigationState,
  productLink,
  readPageState,
  sharedState,
} from '../../../src/core/page/page-state.ts';

const nowUs = Date.UTC(2026, 4, 10, 12) * 1_000;
const hourUs = 3_600_000_000;
const dayOfMay = (day: number, hour = 0) => Date.UTC(2026, 4, day, hour) * 1_000;

function read(search: string, back = '24h') {
  return readPageState(new URL(`http://localhost/live${search}`), { nowUs, back });
}

describe('the state of a page', () => {
  it('is by default the period of the page until now', () => {
    expect(read('')).toEqual({
      ...{ since: undefined, until: undefined, subscription: undefined, event: undefined },
      ...{ filter: '', sinceUs: nowUs - 24 * hourUs, untilUs: nowUs },
    });
    expect(read('', '7d').sinceUs).toBe(nowUs - 168 * hourUs);
    // As a form without JavaScript sends it, and with parameters of other pages.
    expect(read('?since=&until=%20&subscription=&event=&filter=')).toEqual(read(''));
    expect(read('?event=exploded&view=1,2&projection=arctic')).toEqual(read(''));
  });

  it.each([
    ['since=90m', nowUs - 1.5 * hourUs, nowUs],
    ['since=7d', nowUs - 168 * hourUs, nowUs],
    ['since=2026-05-01', dayOfMay(1), nowUs],
    ['since=2026-05-01T12:00Z', dayOfMay(1, 12), nowUs],
    ['since=2026-05-01T12:00:00%2B02:00', dayOfMay(1, 10), nowUs],
    ['since=48h&until=24h', nowUs - 48 * hourUs, nowUs - 24 * hourUs],
    ['until=2026-05-02', dayOfMay(1), dayOfMay(2)],
    ['until=2100-01-01', nowUs - 24 * hourUs, nowUs],
  ])('has the period of %s', (search, sinceUs, untilUs) => {
    expect(read(`?${search}`)).toMatchObject({ sinceUs, untilUs });
  });

  it.each([
    ['?since=yesterday', '"yesterday" is not a time. Use ISO 8601'],
    ['?since=24x', '"24x" is not a time.'],
    ['?since=-1h', '"-1h" is not a time.'],
    ['?since=1e9h', '"1e9h" is not a time.'],
    ['?until=2026-13-01', '"2026-13-01" is not a time.'],
    ['?since=2026-02-30', '"2026-02-30" is not a time.'],
    ['?since=1h&until=2h', 'since must be before until'],
    ['?since=0h', 'since must be before until'],
    ['?since=101d', 'at most 100 days'],
    ['?since=999999d', 'at most 100 days'],
    ['?until=999999d', 'The period begins before 1970.'],
  ])('refuses %s with the reason', (search, reason) => {
    expect(() => read(search)).toThrow(
      expect.objectContaining({ code: 'invalid', text: expect.stringContaining(reason) }),
    );
  });

  it('survives a link, whatever the texts contain', () => {
    const text = fc.string({ unit: 'binary', minLength: 1 }).filter((one) => one.trim() === one);
    fc.assert(
      fc.property(text, (one) => {
        const given = { since: '7d', subscription: one, event: 'created', filter: one };
        const link = linkTo('/live', given);
        expect(read(link.slice('/live'.length))).toMatchObject(given);
        expect(link).toBe(linkTo('/live', { ...given, other: '', none: undefined, zero: null }));
        expect(decodeURIComponent(productLink(one).slice('/products/'.length))).toBe(one);
      }),
    );
  });

  it('passes period and subscription to other pages, and only a relative period to the navigation', () => {
    const hour = '?since=2026-05-10T09:00Z&until=2026-05-10T10:00Z&subscription=alps';
    const shared = sharedState(read('?since=7d&subscription=alps&event=created&filter=Online'));
    expect(linkTo('/map', shared)).toBe('/map?since=7d&subscription=alps');
    const linkOf = (search: string) => linkTo('/live', navigationState(read(search)));
    expect(linkOf('?since=7d&subscription=alps')).toBe('/live?since=7d&subscription=alps');
    expect(linkOf(hour)).toBe('/live?subscription=alps');
    const searches = [hour, '?since=7d', '?since=2d&until=1d', ''];
    expect(searches.map((one) => isAbsolute(read(one)))).toEqual([true, false, true, false]);
  });
});
