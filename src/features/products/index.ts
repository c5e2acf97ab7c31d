/** The feature `products`. */

import { defineFeature } from '../../core/feature.ts';
import { moduleFile } from '../../core/host/module-file.ts';
import type { Products } from '../../filter/products.ts';
import { defineTables } from '../../store/tables.ts';
import type { ProductFormat } from './output.ts';

declare module '../../core/feature.ts' {
  interface Feature {
    /** Formats of `query products`. */
    productFormats?: readonly ProductFormat[];
  }
}

declare module '../../core/cli/command.ts' {
  interface Parts {
    /** The product index, without updating it. */
    products: Products;
  }
}

declare module '../../receiver/serve.ts' {
  interface RunningReceiver {
    /** The product index, which follows the log automatically. */
    products: Products;
  }
}

declare module '../../core/api/listener-slot.ts' {
  interface ConsoleParts {
    products: Products;
  }
}

export const products = defineFeature({
  name: 'products',
  status: () => import('./status.ts'),
  commands: [
    {
      name: 'products',
      under: { command: 'query' },
      load: async () => (await import('./query-products.ts')).queryProductsCommand,
    },
    {
      name: 'index',
      under: { command: 'admin' },
      load: async () => (await import('./index-command.ts')).indexCommand,
    },
  ],
  pruneSteps: async () => (await import('./prune-steps.ts')).pruneSteps,
  service: async (context) => (await import('./service.ts')).serveProducts(context),
  listener: () => import('./listener.ts'),
  tables: [
    defineTables({
      group: 'products',
      operations: moduleFile('./operations', import.meta.url),
      reader: () => ({}),
      store: () => ({}),
    }),
  ],
  settings: () => import('./settings.ts'),
  parts: {
    products: async (io) => {
      const { dataDir } = (await import('../../core/config/config.ts')).loadConfig(io, ['data']);
      return (await import('./index-file/products.ts')).openProducts(dataDir);
    },
  },
});
