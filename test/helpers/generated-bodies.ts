/** Notifications of real size, as the sandbox sends them. */

import { createRandom } from '../../src/sandbox/clock.ts';
import { createIdentify, pushBody } from '../../src/sandbox/delivery/notification.ts';
import { createProductGenerator } from '../../src/sandbox/products/product-generator.ts';

/** Each is for another product; equal seeds give equal bytes. */
export function generatedBodies(count: number, seed = 20_261_121): Buffer[] {
  const random = createRandom(seed);
  const generator = createProductGenerator({ seed });
  const identify = createIdentify(random.uuid(), random);
  return Array.from({ length: count }, (_, i) => {
    const atMs = Date.UTC(2026, 10, 1) + i * 2_700;
    const product = generator.next(atMs - 60_000);
    return pushBody(identify({ event: 'created', product, atMs }), product);
  });
}
