/** The feature `stac`. */
import { defineFeature } from '../../core/feature.ts';

export const stac = defineFeature({
  name: 'stac',
  needs: ['products'],
  listener: () => import('./listener.ts'),
  productFormats: [
    {
      name: 'stac',
      hasDeleted: false,
      help: 'STAC items, one per line, as from /stac of the private listener',
      load: async () => {
        const { toStacItem } = await import('./item.ts');
        return (product, urls) => {
          const item = toStacItem(product, urls);
          if (product.summary !== undefined) item.properties.description = product.summary.text;
          return JSON.stringify(item);
        };
      },
    },
  ],
});
