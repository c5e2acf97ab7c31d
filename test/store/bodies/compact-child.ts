/** Compacts a data directory until it is killed. Prints `begun` after the first replaced pack. */
import { compactLog } from '../../../src/store/bodies/compact-log.ts';

const [, , dataDir = ''] = process.argv;
await compactLog({
  dataDir,
  freeShare: 0,
  rest: async () => {},
  signal: new AbortController().signal,
  onStep: ({ bodies }) => {
    if (bodies > 0) process.stdout.write('begun\n');
  },
});
