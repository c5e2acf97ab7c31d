/** A rotation cut at every single call: no delivery is refused, and run again it comes to its end. */
import { describe, expect, it } from 'vitest';
import type { Cut } from './plan/cut-calls.ts';
import {
  held,
  otherCredentials,
  otherDigest,
  registrationOf,
  stranger,
} from './plan/plan-samples.ts';
import { openRotation, type RotationSituation, type TestedRotation } from './rotation-world.ts';

const before = { credentials: otherCredentials };
const known = registrationOf({ credentialsDigest: otherDigest });
const situations: [string, RotationSituation][] = [
  [
    'of two that deliver all the time',
    {
      held: [held(before), held({ ...before, name: 'baltic' }), stranger()],
      registrations: [known, { ...known, name: 'baltic', subscriptionId: 'id-baltic' }],
      limits: { runningMax: 3, totalMax: 10 },
      deliverEverySeconds: { 'id-alps': 1, 'id-baltic': 1 },
      latencySeconds: 4,
      waitSeconds: 40,
    },
  ],
  [
    'of one that is silent, one that is paused, and one made by hand',
    {
      held: [
        held(before),
        held({ ...before, name: 'baltic', status: 'paused' }),
        held({ ...before, id: 'id-by-hand' }),
      ],
      registrations: [known, { ...known, name: 'baltic', subscriptionId: 'id-baltic' }],
      deliverEverySeconds: { 'id-by-hand': 7 },
      waitSeconds: 15,
    },
  ],
];

/** Of many calls alike in a row, only the first and the last are cut. */
async function cutsOf(situation: RotationSituation): Promise<Cut[]> {
  const rotation = await openRotation(situation);
  await rotation.rotate();
  rotation.planned.close();
  const calls = rotation.calls();
  const distinct = calls
    .map((name, call) => ({ name, call }))
    .filter(({ name, call }) => {
      const isOneOfMany = calls[call - 2] === name && calls[call + 2] === name;
      return name === 'client.edit' || !isOneOfMany;
    });
  // To be killed after a call is to be killed before the next one.
  return distinct.flatMap(({ call }) => [
    { call, when: 'before', how: 'killed' },
    { call, when: 'before', how: 'unavailable' },
    { call, when: 'after', how: 'unavailable' },
  ]);
}

function expectEnded(rotation: TestedRotation): void {
  expect(rotation.refused).toEqual([]);
  const pairs = rotation.files.at(-1)?.pairs;
  expect(pairs).toHaveLength(1);
  expect(rotation.accepted()).toEqual(pairs);
  for (const one of rotation.planned.catalogue.held()) {
    if (one.id === 'id-stranger') expect(one).toEqual(stranger());
    else expect([one.credentials]).toEqual(pairs);
  }
}

describe.each(situations)('a rotation %s', (_, situation) => {
  it('that is cut anywhere and run again ends with the new pair only', async () => {
    const cuts = await cutsOf(situation);
    expect(cuts.length).toBeGreaterThan(30);
    const failures: string[] = [];
    for (const cut of cuts) {
      const rotation = await openRotation(situation);
      await rotation.rotate(cut).catch(() => undefined);
      const cutAt = rotation.calls()[cut.call];
      const begun = rotation.files.at(-1)?.pairs ?? [];
      try {
        rotation.pass(100);
        expect(rotation.refused).toEqual([]);
        await rotation.rotate();
        rotation.pass(100);
        expectEnded(rotation);
        // Two pairs are a rotation that is under way, which goes on with its own.
        if (begun.length === 2) expect(rotation.files.at(-1)?.pairs).toEqual([begun[1]]);
      } catch (error) {
        failures.push(`${cut.how} ${cut.when} ${cut.call} ${cutAt}: ${error}`);
      }
      rotation.planned.close();
    }
    expect(failures).toEqual([]);
  }, 60_000);
});
