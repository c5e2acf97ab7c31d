import { describe, expect, it } from 'vitest';
import type { Alert } from '../../src/domain/alerts.ts';
import type { KnownNode } from '../../src/domain/shared-log.ts';
import { checkDatabase, checkReceivers } from '../../src/watch/check-receivers.ts';

function node(
  name: string,
  {
    facts = {},
    ...fields
  }: Partial<Omit<KnownNode, 'facts'>> & { facts?: Partial<KnownNode['facts']> } = {},
): KnownNode {
  return {
    ...{ id: name, name, applied: 100_000, lag: 0, ageMs: 1_000, ...fields },
    facts: {
      ...{ version: '1', startedAtUs: 0, refusing: null, fault: null, freeBytes: 10 * 2 ** 30 },
      ...{ credentials: 'digest', ...facts },
    },
  };
}

function findingsOf(others: readonly KnownNode[], active: Alert[] = []) {
  const nodes = [node('own', { ageMs: 600_000 }), ...others];
  return checkReceivers({ ownId: 'own', nodes }, { active });
}

it('raises an alert while the database of the shared log warns', () => {
  expect(checkDatabase([]).findings).toEqual([]);
  expect(checkDatabase([]).checked).toEqual([{ kind: 'database', subject: '' }]);
  const warning = { code: '01000', text: 'database "gis" must be vacuumed' };
  expect(checkDatabase([warning]).findings).toMatchObject([
    { severity: 'warning', evidence: [expect.stringContaining('must be vacuumed')] },
  ]);
});

describe('the check of the other receivers', () => {
  it('resolves all alerts without a shared log', () => {
    expect(checkReceivers(null, { active: [] })).toEqual({ checked: [], findings: [] });
    const active = findingsOf([node('b', { ageMs: 61_000 })]).findings.map((one, id) => ({
      ...{ ...one, id, raisedAtUs: 0, resolvedAtUs: null },
    }));
    const { checked, findings } = checkReceivers(null, { active });
    expect({ checked, findings }).toEqual({
      ...{ checked: [{ kind: 'receiver', subject: 'b' }], findings: [] },
    });
  });

  it('finds nothing for receivers that report, and does not check the own one', () => {
    const { checked, findings } = findingsOf([node('b', { lag: 1_000 })]);
    expect(checked).toEqual([{ kind: 'receiver', subject: 'b' }]);
    expect(findings).toEqual([]);
  });

  it.each([
    [node('b', { ageMs: 61_000 }), 'has not reported for 61 s', 'log remove b'],
    [
      node('b', { facts: { refusing: 'No database.' } }),
      'cannot store notifications',
      'connection',
    ],
    [node('b', { facts: { fault: 'The disk is full.' } }), 'cannot apply entries', 'disk'],
    [node('b', { lag: 99_990 }), 'lags 99,990 entries', 'disk'],
    [node('b', { facts: { freeBytes: 5e8 } }), 'of free space', 'Free some space'],
  ])(
    'raises an alert for one that is silent, refuses, lags or has no space',
    (one, cause, next) => {
      const [finding] = findingsOf([one]).findings;
      expect(finding).toMatchObject({ kind: 'receiver', subject: 'b', severity: 'warning' });
      expect(finding?.cause).toContain(cause.replace('61 s', '1 min'));
      expect(finding?.nextStep).toContain(next);
    },
  );

  it('resolves the alert of one that was removed', () => {
    const [{ findings }] = [findingsOf([node('b', { ageMs: 61_000 })])];
    const active = findings.map((one, id) => ({ ...one, id, raisedAtUs: 0, resolvedAtUs: null }));
    expect(findingsOf([], active)).toEqual({
      checked: [{ kind: 'receiver', subject: 'b' }],
      findings: [],
    });
  });
});
