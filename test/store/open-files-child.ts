/**
 * Opens the fresh database in each folder named on standard input, and answers each with a line.
 */
import { createInterface } from 'node:readline';
import { openForWriting } from '../../src/store/engine/database.ts';

for await (const dataDir of createInterface({ input: process.stdin })) {
  try {
    openForWriting({ dataDir }).close();
    process.stdout.write('opened\n');
  } catch (error) {
    process.stdout.write(`${String(error)}\n`);
  }
}
