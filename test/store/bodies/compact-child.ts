/** A program that compacts a data directory; to be killed. Says `begun` when it has replaced something. */
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
