/** The product index in the status: its size. Its lag is that of a reader of the log. */

import { stat } from 'node:fs/promises';
import { z } from 'zod';
import { bytes } from '../../core/status/gauge.ts';
import { defineStatusPart } from '../../core/status/status.ts';
import { errorCodeOf } from '../../core/terms/app-error.ts';
import { currentProductFile } from './index-file/product-file.ts';

declare module '../../core/status/status.ts' {
  interface StatusFacts {
    /** 0 without an index; null if not known. */
    indexBytes: number | null;
  }
}

async function indexSize(dataDir: string): Promise<number> {
  const file = currentProductFile(dataDir);
  if (file === null) return 0;
  const sizes = await Promise.all([file, `${file}-wal`].map(sizeOf));
  return sizes.reduce((sum, one) => sum + one, 0);
}

/** Returns 0 for a missing file. */
async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return 0;
    throw error;
  }
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
    read: async () => ({ indexBytes: await indexSize(setting('dataDir')) }),
  }),
  evaluate: () => null,
  metrics: [
    {
      title: 'Log and disk',
      rows: [
        bytes(
          'earshot_index_bytes',
          'Size of the product index; 0 without an index.',
          ({ indexBytes }) => indexBytes,
        ),
      ],
    },
  ],
});

export const parts = [part];
