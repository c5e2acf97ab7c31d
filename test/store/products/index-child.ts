/** A program that indexes a data directory; to be killed. Says `begun` when it has indexed something. */
import { catchUpIndex } from '../../../src/store/products/index-maintenance.ts';

const [, , dataDir = ''] = process.argv;
await catchUpIndex({
  dataDir,
  onProgress: ({ indexedPosition }) => {
    if (indexedPosition > 0) process.stdout.write('begun\n');
  },
});
