/** SIGKILL at every request of a first registration: the next run has the usual result. */
import { expect, it } from 'vitest';
import { rows } from '../features/subscriptions/account-context.ts';
import { cutEverywhere } from './cut-everywhere.ts';

const filter = "Collection/Name eq 'SENTINEL-2'";

it('a first registration has the usual result after a kill at each of its requests', async () => {
  const requests = await cutEverywhere(
    async () => undefined,
    ['register', '--filter', filter, '--yes'],
    async (context) => {
      expect(rows(context)).toEqual([{ name: 'default', status: 'running', filter }]);
    },
  );
  // Login, a list for the plan, the count of last week's products, two lists before the change, create, list.
  expect(requests).toBe(7);
}, 120_000);
