/** The product index in the status: its size. Its lag is that of a reader of the log. */

import { statSync } from 'node:fs';
import { z } from 'zod';
import { bytes } from '../../core/status/gauge.ts';
import { defineStatusPart } from '../../core/status/status.ts';
import { currentProductFile } from './index-file/product-file.ts';

declare module '../../core/status/status.ts' {
  interface StatusFacts {
    /** 0 without an index; null if not known. */
    indexBytes: number | null;
  }
}

function indexSize(dataDir: string): number {
  const file = currentProductFile(dataDir);
  if (file === null) return 0;
  const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return sizeOf(file) + sizeOf(`${file}-wal`);
}

const part = defineStatusPart({
  name: 'index',
  unknown: { indexBytes: null },
  fields: {
    indexBytes: z
      .number()
      .nullable()
      .describe('Size of the product index; 0 without an index, null if not known.'),
  },
  open: ({ setting }) => ({
    read: async () => ({ indexBytes: indexSize(setting('dataDir')) }),
  }),
  evaluate: () => null,
  metrics: {
    'Log and disk': [
      bytes(
        'earshot_index_bytes',
        'Size of the product index; 0 without an index.',
        ({ indexBytes }) => indexBytes,
      ),
    ],
  },
});

export const parts = [part];
