/** The feature `products`. */

import { defineFeature } from '../../core/feature.ts';
import { moduleFile } from '../../core/host/rpc.ts';
import type { SummaryText } from '../../core/terms/read-models.ts';
import type { Products } from '../../filter/products.ts';
import { defineTables, type ReaderPorts } from '../../store/tables.ts';
import type { ProductFormat } from './output.ts';

export interface ListedText {
  productName: string | null;
  text: SummaryText | null;
  state: 'waiting' | 'done';
  /** Why the text waits, or why it is from the template. */
  reason: string | null;
}

/** Texts about products. */
export interface ProductTexts {
  /** Returns the written texts by product id. */
  writtenTexts(
    store: ReaderPorts,
    productIds: readonly string[],
  ): Promise<ReadonlyMap<string, SummaryText>>;
  /** Reads the texts of products, written and waiting. */
  reader(store: ReaderPorts): {
    find(query: { state?: 'done'; limit?: number }): AsyncIterable<ListedText>;
    waiting(): Promise<{ waiting: number }>;
  };
}

declare module '../../core/feature.ts' {
  interface Feature {
    /** Formats of `query products`. */
    productFormats?: readonly ProductFormat[];
    /** Texts for `/api/products?summary=true`. One feature has them. */
    productTexts?: () => Promise<ProductTexts>;
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
  interface ListenerSlot {
    productTexts?: ProductTexts;
  }
}

export const products = defineFeature({
  name: 'products',
  offers: [
    'flags.ts',
    'current-index.ts',
    'index-file/index-maintenance.ts',
    'index-file/products.ts',
    'output.ts',
    'page/product-list.ts',
    'page/product-search.ts',
    'places/places.ts',
    'route.ts',
    'settings.ts',
  ],
  status: () => import('./status.ts'),
  commands: [
    {
      name: 'products',
      under: { command: 'query' },
      load: async () => (await import('./query-products.ts')).queryProductsCommand,
    },
  ],
  afterPruning: async () => (await import('./index-file/index-maintenance.ts')).afterPruning,
  service: async (context) => (await import('./index-file/products.ts')).serveProducts(context),
  listener: () => import('./listener.ts'),
  library: async () => (await import('./index-file/products.ts')).openStoredProducts,
  tables: [
    defineTables({
      group: 'products',
      operations: moduleFile('./sql', import.meta.url),
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
