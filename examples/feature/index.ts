/** An example of a feature: marks on products. In `src/features/marks`, the imports are without `src/`. */
import { defineFeature } from '../../src/core/feature.ts';
import { moduleFile } from '../../src/core/host/rpc.ts';
import { defineTables } from '../../src/store/tables.ts';

interface MarkReader {
  /** Returns the marked products, the first mark first. */
  list(): Promise<string[]>;
}
interface Marks extends MarkReader {
  add(productId: string, atUs: number): Promise<void>;
}

declare module '../../src/store/tables.ts' {
  interface ReaderPorts {
    marks: MarkReader;
  }
  interface StorePorts {
    marks: Marks;
  }
}

export const marks = defineFeature({
  name: 'marks',
  commands: [
    {
      name: 'mark',
      under: 'data',
      load: async () => (await import('./command.ts')).markCommand,
    },
  ],
  tables: [
    defineTables<typeof import('./sql.ts'), MarkReader, Marks>({
      group: 'marks',
      operations: moduleFile('./sql', import.meta.url),
      reader: (reads) => ({ list: () => reads.list() }),
      store: (reader, writes) => ({ ...reader, add: (id, atUs) => writes.add(id, atUs) }),
    }),
  ],
  listener: () => import('./listener.ts'),
});
