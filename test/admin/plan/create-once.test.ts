/** A creation whose answer is lost on the way makes one subscription, and not two. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { createOnce } from '../../../src/admin/apply-plan.ts';
import type { SubscriptionClient } from '../../../src/admin/subscription-client.ts';
import { AppError } from '../../../src/domain/app-error.ts';
import { expectSettled } from './expect-settled.ts';
import { digest, held, otherFilter, stranger, wanted } from './plan-samples.ts';
import { openPlanWorld, type Situation } from './plan-world.ts';

type Create = SubscriptionClient['create'];

const noAnswer = () => new AppError('unavailable', 'No answer came.');

/** Creates through a client that does with each try what the test says, one after the other. */
async function startCreation(
  tries: ((create: Create) => Create)[],
  { situation = {}, lookAfterMs = 0 }: { situation?: Situation; lookAfterMs?: number } = {},
) {
  const planned = await openPlanWorld(situation);
  onTestFinished(planned.close);
  const world = { ...planned.world(), lookAfterMs };
  const asked: string[] = [];
  const client: SubscriptionClient = {
    ...planned.catalogue.client,
    list: () => {
      asked.push('list');
      return planned.catalogue.client.list();
    },
    create: (subscription) => {
      asked.push('create');
      const attempt = tries[asked.filter((word) => word === 'create').length - 1];
      const real = planned.catalogue.client.create;
      return attempt === undefined ? real(subscription) : attempt(real)(subscription);
    },
  };
  const listed = await planned.catalogue.client.list();
  const about = {
    credentialsDigest: digest,
    actor: 'register',
    listed,
    listedAtUs: world.nowUs(),
  } as const;
  return { planned, asked, create: () => createOnce(wanted(), { ...world, ...about, client }) };
}

/** Made, but the answer is lost. */
const loseAnswer = (create: Create): Create => {
  return async (subscription) => {
    await create(subscription);
    throw noAnswer();
  };
};
/** Never arrived. */
const loseRequest = (): Create => () => Promise.reject(noAnswer());

describe('a creation', () => {
  it('is asked for once when it is answered', async () => {
    const { planned, asked, create } = await startCreation([]);
    const made = await create();
    expect(planned.catalogue.held()).toMatchObject([{ id: made.id, status: 'running' }]);
    expect(asked).toEqual(['create']);
  });

  it('that was made without an answer is found, and not asked for again', async () => {
    const { planned, asked, create } = await startCreation([loseAnswer]);
    const made = await create();
    expect(planned.catalogue.held().map(({ id }) => id)).toEqual([made.id]);
    expect(asked).toEqual(['create', 'list']);
  });

  it('whose answer cannot be read is found', async () => {
    const unreadable = (create: Create): Create => {
      return async (subscription) => {
        await create(subscription);
        return null;
      };
    };
    const { planned, asked, create } = await startCreation([unreadable]);
    const made = await create();
    expect(planned.catalogue.held().map(({ id }) => id)).toEqual([made.id]);
    expect(asked).toEqual(['create', 'list']);
  });

  it('that never arrived is asked for again, after a look', async () => {
    const { planned, asked, create } = await startCreation([loseRequest, loseRequest]);
    const made = await create();
    expect(planned.catalogue.held().map(({ id }) => id)).toEqual([made.id]);
    expect(asked).toEqual(['create', 'list', 'create', 'list', 'create']);
  });

  it('that is made late is found, as the look waits for it', async () => {
    const late = (create: Create): Create => {
      return async (subscription) => {
        setTimeout(() => void create(subscription), 10);
        throw noAnswer();
      };
    };
    const { planned, asked, create } = await startCreation([late], { lookAfterMs: 200 });
    const made = await create();
    expect(planned.catalogue.held().map(({ id }) => id)).toEqual([made.id]);
    expect(asked).toEqual(['create', 'list']);
  });

  it('that is refused because the one before took the last place is found', async () => {
    let makeLate = () => Promise.resolve();
    const late = (create: Create): Create => {
      return (subscription) => {
        makeLate = async () => void (await create(subscription));
        return Promise.reject(noAnswer());
      };
    };
    const afterwards = (create: Create): Create => {
      return async (subscription) => {
        await makeLate();
        return create(subscription);
      };
    };
    const situation = { held: [stranger()] };
    const { planned, asked, create } = await startCreation([late, afterwards], { situation });
    const made = await create();
    expect(planned.catalogue.held().map(({ id }) => id)).toEqual(['id-stranger', made.id]);
    expect(asked).toEqual(['create', 'list', 'create', 'list']);
  });

  it('that is refused at a repetition, and is not there, ends as refused', async () => {
    const refuse = (): Create => () => Promise.reject(new AppError('invalid', 'No.'));
    const { asked, create } = await startCreation([loseRequest, refuse]);
    await expect(create()).rejects.toMatchObject({ code: 'invalid' });
    expect(asked).toEqual(['create', 'list', 'create', 'list']);
  });

  it('is given up after three tries, with the reason of the last', async () => {
    const { planned, asked, create } = await startCreation([loseRequest, loseRequest, loseRequest]);
    await expect(create()).rejects.toMatchObject({ code: 'unavailable' });
    expect(asked.filter((word) => word === 'create')).toHaveLength(3);
    expect(asked.at(-1)).toBe('list');
    expect(planned.catalogue.held()).toEqual([]);
  });

  it.each(['invalid', 'unauthorized', 'too_many', 'conflict'] as const)(
    'that is refused as %s is not asked for again',
    async (code) => {
      const refuse = (): Create => () => Promise.reject(new AppError(code, 'No.'));
      const { asked, create } = await startCreation([refuse]);
      await expect(create()).rejects.toMatchObject({ code });
      expect(asked).toEqual(['create']);
    },
  );
});

describe('the look', () => {
  it('takes nothing for the new one that was there before, or is not as wanted', async () => {
    const { planned, create } = await startCreation([loseRequest], {
      situation: { held: [held({ status: 'paused' }), stranger()] },
    });
    planned.catalogue.put(held({ id: 'id-another-filter', status: 'paused', filter: otherFilter }));
    planned.catalogue.put(held({ id: 'id-cancelled', status: 'cancelled' }));
    planned.catalogue.put(held({ id: 'id-other-name', name: 'baltic', status: 'paused' }));
    const made = await create();
    expect(made.id).toBe('made-1');
  });
});

describe('one that is made after all, beside its repetition', () => {
  it('is kept alone by the next registration', async () => {
    let makeLate = () => Promise.resolve();
    const veryLate = (create: Create): Create => {
      return (subscription) => {
        makeLate = async () => void (await create(subscription));
        return Promise.reject(noAnswer());
      };
    };
    const { planned, create } = await startCreation([veryLate]);
    await create();
    await makeLate();
    expect(planned.catalogue.held()).toHaveLength(2);
    const options = { desired: [wanted()] };
    await planned.register(options);
    await expectSettled(planned, options);
  });
});
