/**
 * Indexes a data directory until it is killed. Prints `begun` after the first indexed notification.
 */
import { catchUpIndex } from '../../../../src/features/products/index-file/index-maintenance.ts';

const [, , dataDir = ''] = process.argv;
await catchUpIndex({
  dataDir,
  onProgress: ({ indexedPosition }) => {
    if (indexedPosition > 0) process.stdout.write('begun\n');
  },
});
