/** Content of products: computed from the id, never stored. The same id gives the same bytes. */
import { createCipheriv, createHash } from 'node:crypto';
import type { ProductGenerator, PublishedProduct } from './product-generator.ts';

/** Bytes that can be read from any position. */
export interface Content {
  readonly size: number;
  /** Returns the bytes from `start` up to, not including, `end`. */
  readonly read: (start: number, end: number) => Buffer;
}

/** The bucket of the real service. */
export const bucket = 'eodata';

export type Contents = ReturnType<typeof createContents>;

/** Names of a product's objects in the object store, each with the share of the content at which it ends. */
const objectNames = [
  ['manifest.safe', 0.1],
  ['measurement/data.dat', 0.9],
  ['preview/quick-look.png', 1],
] as const;
const blockBytes = 16;

/** Creates the contents of products, of a size in bytes. */
export function createContents(size: number) {
  /** Product by S3 path, without the bucket. */
  const ids = new Map<string, string>();
  const objectsOf = ([path, productId]: readonly [string, string]) => {
    let end = 0;
    return objectNames.map(([name, share]) => {
      const start = end;
      end = Math.floor(size * share);
      const bytes = contentOf(productId, size).read(start, end);
      // As of an object that was uploaded in two parts: not the MD5 of the object.
      const etag = name.startsWith('measurement') ? `${md5(bytes)}-2` : md5(bytes);
      const read = (from: number, to: number) => bytes.subarray(from, to);
      return { key: `${path}/${name}`, productId, etag: `"${etag}"`, size: bytes.length, read };
    });
  };
  const fill = (product: PublishedProduct): PublishedProduct => {
    ids.set(product.S3Path.replace(`/${bucket}/`, ''), product.Id);
    const Value = md5(contentOf(product.Id, size).read(0, size));
    const sums = product.Checksum.filter(({ Algorithm }) => Algorithm === 'MD5');
    const own = { ContentLength: size, Checksum: sums.map((sum) => ({ ...sum, Value })) };
    const [extracted, ...archives] = product.Locations;
    return { ...product, ...own, Locations: [Object.assign({}, extracted, own), ...archives] };
  };
  return {
    /** Returns a generator whose new products have the size and the MD5 of their content. */
    filled: (generator: ProductGenerator): ProductGenerator => ({
      ...generator,
      next: (publicationMs) => fill(generator.next(publicationMs)),
    }),
    of: (productId: string): Content => contentOf(productId, size),
    /** Returns the objects whose key starts with a prefix, in the order of keys. */
    objects: (prefix: string) =>
      [...ids]
        .filter(([path]) => path.startsWith(prefix) || prefix.startsWith(`${path}/`))
        .flatMap(objectsOf)
        .filter(({ key }) => key.startsWith(prefix))
        .toSorted((one, other) => (one.key < other.key ? -1 : 1)),
  };
}

/** The key stream of AES in counter mode can start at any block. */
function contentOf(productId: string, size: number): Content {
  const key = createHash('sha256').update(productId.toLowerCase()).digest();
  const read = (start: number, end: number) => {
    const skipped = start % blockBytes;
    const counter = Buffer.alloc(blockBytes);
    counter.writeBigUInt64BE(BigInt((start - skipped) / blockBytes), 8);
    const stream = createCipheriv('aes-256-ctr', key, counter);
    return stream.update(Buffer.alloc(end - start + skipped)).subarray(skipped);
  };
  return { size, read };
}

function md5(bytes: Buffer): string {
  return createHash('md5').update(bytes).digest('hex');
}
