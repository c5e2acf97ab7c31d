/** Reads pages of the catalogue, of queues and of query results; large ones on a thread. */

import { moduleFile } from '../core/host/rpc.ts';
import { Thread } from '../core/host/thread.ts';
import { readEntries } from './queue-client.ts';
import { readListing } from './read-listing.ts';

export const pageReaders = { readEntries, readListing };

type Readers = typeof pageReaders;

/** Smaller pages are read on this thread, in a few milliseconds. */
const ownThreadBytesMax = 2 ** 18;

const limits = {
  ...{ heapMb: 128, containedBufferBytes: 2 ** 28 },
  ...{ callTimeoutSeconds: 30, idleSeconds: 10, isUnreferenced: true },
};

/**
 * Returns the function that reads the bytes of a page. It takes the bytes, and returns them with the result. Rejects
 * with `unavailable` for a page that needs too much memory or time.
 */
export function createReadPage() {
  const file = moduleFile('./page-thread', import.meta.url);
  const thread = new Thread(file, { owner: 'large pages', data: null, ...limits });
  return async <Name extends keyof Readers>(
    name: Name,
    page: Uint8Array,
    options: Parameters<Readers[Name]>[1],
  ): Promise<{ result: ReturnType<Readers[Name]>; bytes: Uint8Array }> => {
    const read = pageReaders[name] as (page: Uint8Array, options: unknown) => never;
    if (page.byteLength <= ownThreadBytesMax) return { result: read(page, options), bytes: page };
    const { buffer, byteLength } = page;
    const own = byteLength === buffer.byteLength ? page : Uint8Array.from(page);
    const moved = [own.buffer as ArrayBuffer];
    // The thread answers with a value of this type.
    return (await thread.call(name, [own, options], undefined, moved)) as never;
  };
}
