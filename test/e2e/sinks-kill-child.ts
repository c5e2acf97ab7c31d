/**
 * Small receiver: stores new notifications until it is killed, and delivers them to the sinks in its arguments.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createRunProgram } from '../../src/core/host/run-program.ts';
import { startSinks } from '../../src/features/sinks/run-sinks.ts';
import { messageUrls } from '../features/sinks/sink-definition.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import { openStore } from '../helpers/store.ts';

const [dataDir = '', firstNumber = '', definitions = '[]', products = '50'] = process.argv.slice(2);
const nothing = () => undefined;
const nowUs = () => Date.now() * 1000;
const store = await openStore({ dataDir, nowUs });
const pause = (ms: number, signal: AbortSignal) =>
  delay(ms, undefined, { signal }).catch(() => undefined);

startSinks(
  {
    sinks: store.sinks,
    log: store,
    nowUs,
    pause,
    random: Math.random,
    logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    fetch,
    run: createRunProgram({ env: process.env }),
    urls: messageUrls,
  },
  JSON.parse(definitions),
);
process.send?.('started');

// Few products: some wait for their turn. With `none`, it only delivers stored notifications.
for (let number = Number(firstNumber); firstNumber !== 'none'; number += 10) {
  const made = Array.from({ length: 10 }, (_, index) => number + index);
  await Promise.all(
    made.map((one) =>
      store.accept(
        delivery(
          notification(one, {
            ProductId: `product-${one % Number(products)}`,
            SubscriptionEvent: one % 4 === 0 ? 'modified' : 'created',
          }),
          { receivedAtUs: nowUs() },
        ),
      ),
    ),
  );
  process.send?.(made);
  await delay(25);
}
