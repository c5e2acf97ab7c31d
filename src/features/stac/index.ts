/** The feature `stac`. */
import { defineFeature } from '../../core/feature.ts';

export const stac = defineFeature({
  name: 'stac',
  needs: ['products'],
  offers: ['collections.ts', 'item.ts'],
  listener: () => import('./listener.ts'),
  productFormats: [
    {
      name: 'stac',
      hasDeleted: false,
      help: 'STAC items, one per line, as from /stac of the private listener',
      load: async () => {
        const { toStacItem } = await import('./item.ts');
        return (product, urls) => JSON.stringify(toStacItem(product, urls));
      },
    },
  ],
});
