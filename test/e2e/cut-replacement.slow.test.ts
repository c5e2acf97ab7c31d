/** SIGKILL at every request of a replacement when only two may run: the next run has the usual result. */
import { expect, it } from 'vitest';
import { rows, unmanaged } from '../features/subscriptions/account-context.ts';
import { cutEverywhere } from './cut-everywhere.ts';

const filter = "Collection/Name eq 'SENTINEL-2'";
const otherFilter = "Collection/Name eq 'SENTINEL-1'";

it('a replacement has the usual result after a kill at each of its requests', async () => {
  const requests = await cutEverywhere(
    async (context) => {
      context.sandbox.addSubscription(unmanaged('other'));
      const registered = await context.run(['register', '--filter', filter, '--yes']);
      expect(registered, registered.err).toMatchObject({ code: 0 });
    },
    ['register', '--filter', otherFilter, '--yes'],
    async (context) => {
      expect(rows(context)).toMatchObject([
        { name: 'other', status: 'running' },
        { name: 'default', status: 'running', filter: otherFilter },
      ]);
      const gaps = await context.receiver.store.administration.gaps();
      expect(gaps.every(({ toUs }) => toUs !== null)).toBe(true);
    },
  );
  // List, the count of last week's products, list; then list and send each of four requests; list.
  expect(requests).toBe(12);
}, 180_000);
