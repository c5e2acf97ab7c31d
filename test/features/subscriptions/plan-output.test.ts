/** A plan as text and as JSON: every kind of difference, without control characters. */
import { expect, it } from 'vitest';
import type { Difference, Plan } from '../../../src/admin/differences.ts';
import type { CatalogueSubscription } from '../../../src/admin/subscription-client.ts';
import { differenceJson, planText } from '../../../src/features/subscriptions/register-command.ts';
import { publicUrl } from '../../admin/samples.ts';
import { creating, current, desired, empty, endpoint, replacing } from './plan-samples.ts';

const textOf = (plan: Partial<Plan>) =>
  planText({ ...empty, ...plan }, { runningMax: 2, totalMax: 10 }, (_style, text) => text);

const same = { ...current, events: [...desired.events], filter: desired.filter };
const paused = { ...same, status: 'paused' };
const elsewhere = { ...same, endpoint: 'https://old.example.org/notifications/alps' };
const removed = { ...creating(), desired: null };

it('a plan shows every kind of difference, then unchanged subscriptions, then the limits', () => {
  const edit = { status: 'paused', endpoint, credentials: true } as const;
  const differences: Difference[] = [
    creating(),
    { ...creating(), current: same, adopted: true },
    { ...creating(), current: paused, edit: { status: 'running' } },
    { ...creating(), current: elsewhere, edit },
    replacing(),
    replacing({ way: 'delete-first' }),
    replacing({ current: paused }),
    { ...removed, name: 'old', old: [current] },
    removed,
  ];
  const counts = { running: 1, total: 4 };
  const others = { unchanged: ['sea', 'ice'], obsolete: ['old', 'older'], unmanaged: [current] };
  expect(textOf({ differences, ...others, counts })).toMatchInlineSnapshot(`
    "+ create    alps
        type      push
        events    created, modified
        filter    Collection/Name eq 'SENTINEL-2'
        status    running
    ~ adopt     alps
        id        c06f2e68
    ~ resume    alps
        id        c06f2e68
        - status    paused
        + status    running
    ~ pause, change endpoint, change credentials alps
        id        c06f2e68
        - endpoint  https://old.example.org/notifications/alps
        + endpoint  https://earshot.example.org:8443/notifications/alps
    ~ replace   alps
        id        c06f2e68
        - events    created
        + events    created, modified
        - filter    Collection/Name eq 'SENTINEL-1'
        + filter    Collection/Name eq 'SENTINEL-2'
        the new subscription starts before the old one is deleted: no gap, but possible duplicates
    ~ replace   alps
        id        c06f2e68
        - events    created
        + events    created, modified
        - filter    Collection/Name eq 'SENTINEL-1'
        + filter    Collection/Name eq 'SENTINEL-2'
        the account is full, so the old subscription is deleted before the new one is created; the gap is recorded
    ~ replace   alps
        id        c06f2e68
        deletes   c06f2e68
        - status    paused
        + status    running
        the new subscription starts before the old one is deleted: no gap, but possible duplicates
    - delete    old
        id        c06f2e68
        type      push
        events    created
        filter    Collection/Name eq 'SENTINEL-1'
        status    running
    - remove    alps
    = unchanged: sea, ice
    ! not configured, kept: older  (to delete: --prune)
      Subscriptions: 1 of 2 running, 4 of 10 in total; 1 unmanaged (never changed).
    "
  `);
  expect(differences.map((one) => differenceJson(one, publicUrl).actions)).toEqual([
    ...[['create'], ['adopt'], ['resume'], ['pause', 'change endpoint', 'change credentials']],
    ...[['replace'], ['replace'], ['replace'], ['delete'], ['remove']],
  ]);
});

it('text from the catalogue cannot move the cursor, break a line or reverse the text', () => {
  const nasty = 'a\u001b[2J\r\nb\u0007\u009b1m\u202ec\u2028d';
  const odd: CatalogueSubscription = {
    ...{ ...current, id: nasty, status: nasty, events: [nasty], filter: nasty, endpoint: nasty },
  };
  const differences: Difference[] = [
    { ...creating(), current: odd, edit: { status: 'running', endpoint }, adopted: true },
    replacing({ old: [odd, odd], current: odd }),
    { ...removed, name: nasty, old: [odd] },
    { ...removed, name: nasty },
  ];
  const text = textOf({ differences, obsolete: [`${nasty}!`] });
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202a-\u202e\u2028\u2029]/u);
});
