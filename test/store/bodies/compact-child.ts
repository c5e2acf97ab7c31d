/** Compacts a data directory. Prints a line after each step, and the number of compacted bodies at the end. */
import { compactLog } from '../../../src/store/bodies/compact-log.ts';

const [, , dataDir = ''] = process.argv;
const { bodies } = await compactLog({
  dataDir,
  freeShare: 0,
  rest: async () => void process.stdout.write('begun\n'),
  signal: new AbortController().signal,
});
process.stdout.write(`compacted ${bodies}\n`);
