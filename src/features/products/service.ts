/** The product index of a receiver: it follows the log, and answers queries. */
import type { Service, ServiceContext } from '../../receiver/slots.ts';
import { startIndexing } from './index-file/index-maintenance.ts';
import { removeLeftovers } from './index-file/leftovers.ts';
import { openProducts } from './index-file/products.ts';

/** Removes what killed processes have left, which may need the disk space. */
export async function serveProducts({ config, store, log }: ServiceContext): Promise<Service> {
  const { dataDir, diskReserveBytes, index } = config;
  await removeLeftovers(dataDir);
  const indexing = index ? startIndexing({ dataDir, diskReserveBytes, log, store }) : null;
  const products = openProducts(dataDir);
  return {
    parts: { products },
    close: async () => {
      await products.close();
      await indexing?.stop();
    },
  };
}
