/** Which subscriptions of an account count as ours. */
import { describe, expect, it } from 'vitest';
import { sortAccount } from '../../../src/admin/plan.ts';
import type { Held } from './fake-catalogue.ts';
import { earlierUrl, held, publicUrl, pull, registrationOf, stranger } from './plan-samples.ts';

/** The names that are found, and the Ids of what belongs to others. */
function sort(listed: Held[], known: Partial<Parameters<typeof sortAccount>[1]> = {}) {
  const { ours, strangers } = sortAccount(listed, { publicUrl, registrations: [], ...known });
  const names = [...ours].map(([name, some]) => [name, ...some.map(({ id }) => id)]);
  return { ours: names, strangers: strangers.map(({ id }) => id) };
}

const owned = { ours: [['alps', 'id-alps']], strangers: [] };
const foreign = { ours: [], strangers: ['id-alps'] };

describe('an endpoint', () => {
  it.each([
    `${publicUrl}/notifications/alps`,
    `${publicUrl}/notifications/alps/`,
    'https://EARSHOT.example.org:8443/notifications/alps',
    'https://earshot.example.org:08443/notifications/alps',
  ])('is ours as %s', (endpoint) => {
    expect(sort([held({ endpoint })])).toEqual(owned);
  });

  it.each([
    'https://earshot.example.org/notifications/alps',
    'http://earshot.example.org:8443/notifications/alps',
    'https://earshot.example.org:8444/notifications/alps',
    'https://earshot.example.org.evil.example:8443/notifications/alps',
    'https://earshot.example.org:8443@evil.example/notifications/alps',
    'https://another.example.org:8443/notifications/alps',
    `${publicUrl}/notifications`,
    `${publicUrl}/notifications/`,
    `${publicUrl}/notifications/alps/more`,
    `${publicUrl}/notifications/ALPS`,
    `${publicUrl}/notifications/-alps`,
    `${publicUrl}/notifications/a%2Fb`,
    `${publicUrl}/notifications/${'a'.repeat(64)}`,
    `${publicUrl}/prefix/notifications/alps`,
    `${publicUrl}/notifications/alps?version=2`,
    `${publicUrl}/notifications/alps#here`,
    'alps',
    '',
  ])('is not ours as %s', (endpoint) => {
    expect(sort([held({ endpoint })])).toEqual(foreign);
  });

  it('of the standard port may name the port or not', () => {
    const url = 'https://earshot.example.org';
    const named = held({ endpoint: `${url}:443/notifications/alps` });
    expect(sort([named], { publicUrl: url })).toEqual(owned);
  });

  it('is that of a pull subscription when there is none', () => {
    expect(sort([pull()])).toEqual({ ours: [], strangers: ['id-pull'] });
  });
});

describe('an Id', () => {
  it('that is remembered is ours wherever it delivers to', () => {
    const registrations = [registrationOf()];
    expect(sort([stranger({ id: 'id-alps' })], { registrations })).toEqual(owned);
  });

  it('that is remembered keeps the name that it is remembered by', () => {
    const registrations = [registrationOf()];
    const endpoint = `${publicUrl}/notifications/baltic`;
    expect(sort([held({ endpoint })], { registrations })).toEqual(owned);
  });

  it('is nobody when a registration knows of none', () => {
    const registrations = [registrationOf({ subscriptionId: null })];
    expect(sort([stranger(), pull()], { registrations })).toEqual({
      ours: [],
      strangers: ['id-stranger', 'id-pull'],
    });
  });
});

describe('an earlier public URL', () => {
  const moved = held({ endpoint: `${earlierUrl}/notifications/alps` });

  it('is a stranger by itself', () => {
    expect(sort([moved])).toEqual(foreign);
  });

  it('makes it ours when the user names it', () => {
    expect(sort([moved], { movedFrom: earlierUrl })).toEqual(owned);
  });

  it('makes it ours beside what is under the new one already', () => {
    const fresh = held({ id: 'id-new' });
    expect(sort([moved, fresh], { movedFrom: earlierUrl }).ours).toEqual([
      ['alps', 'id-alps', 'id-new'],
    ]);
  });

  it('makes nothing else ours', () => {
    expect(sort([stranger(), pull()], { movedFrom: earlierUrl }).ours).toEqual([]);
  });
});

describe('a status', () => {
  it('of a cancelled one leaves it out altogether', () => {
    const cancelled = [held({ status: 'cancelled' }), stranger({ status: 'cancelled' })];
    expect(sort(cancelled)).toEqual({ ours: [], strangers: [] });
  });

  it.each(['paused', 'held up'])('%s does not matter', (status) => {
    expect(sort([held({ status })])).toEqual(owned);
  });
});
