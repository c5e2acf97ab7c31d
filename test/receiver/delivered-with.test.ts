/** Recorded deliveries, with the subscription name and the user name of each. */
import { expect, it } from 'vitest';
import { basic, exchange, goodNotification } from './raw-client.ts';
import { goodPair, startReceiver } from './running-receiver.ts';

const otherPair = { username: 'catalogue-2', password: 'open barley' };
const other = basic(otherPair.username, otherPair.password);

it('the latest time of each delivery is stored with the name in its path and its user name, also of a duplicate', async () => {
  const receiver = await startReceiver([goodPair, otherPair]);
  const { body } = goodNotification();
  const beginUs = receiver.clock.us;
  const push = (path: string, authorization = basic()) =>
    exchange(receiver, { path, authorization, body });
  await push('/notifications/alps');
  await push('/notifications', other);
  receiver.clock.us += 7;
  await push('/notifications/alps/');
  const marks = [
    { subscription: 'alps', username: goodPair.username, lastAtUs: beginUs + 7 },
    { subscription: null, username: otherPair.username, lastAtUs: beginUs },
  ];
  const stored = async () =>
    (await receiver.store.administration.deliveryMarks()).toSorted((a, b) =>
      a.username < b.username ? -1 : 1,
    );
  await expect.poll(stored, { timeout: 10_000 }).toEqual(marks);
});
