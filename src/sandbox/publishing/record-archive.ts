/** Keeps many records in little memory: the newest as they are, older ones packed in blocks. */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { type ProductView, productView } from '../../filter/product-view.ts';
import type { CatalogueProduct, DeletedProduct } from '../products/catalogue-product.ts';

/** A record and how filters see it. Both are read anew when they were packed: some 40 µs each. */
export interface HeldProduct {
  readonly record: CatalogueProduct | DeletedProduct;
  readonly view: ProductView;
}

export interface RecordArchive {
  /** Takes in a record; it stays for as long as somebody holds what this returns. */
  keep(record: HeldProduct['record']): HeldProduct;
}

// Similar records side by side: 5 kB each become 630 bytes in sixteens, 1,500 alone.
const blockRecords = 16;
// A record and what filters keep of it take some 15 kB of memory.
const unpackedRecords = 4_000;
// Whoever reads page by page, or in the order of changes, comes back to the same blocks.
const readBlocksMax = 64;
const packing = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** Creates an empty archive. */
export function createRecordArchive(): RecordArchive {
  const unpacked: Block[] = [];
  const lately = new Map<Block, readonly HeldProduct[]>();
  let open = new Block();

  const read = (block: Block) => {
    const products = block.unpacked ?? lately.get(block) ?? block.unpack();
    if (block.unpacked !== null) return products;
    lately.delete(block);
    lately.set(block, products);
    const [oldest] = lately.keys();
    if (oldest !== undefined && lately.size > readBlocksMax) lately.delete(oldest);
    return products;
  };

  return {
    keep: (record) => {
      const held = new ArchivedProduct(read, open, open.add(record));
      if (open.unpacked?.length === blockRecords) {
        unpacked.push(open);
        open = new Block();
        if (unpacked.length > unpackedRecords / blockRecords) unpacked.shift()?.pack();
      }
      return held;
    },
  };
}

/** Some records. Nobody but those who hold one of them keeps it in memory. */
class Block {
  /** Null once it is packed. */
  unpacked: HeldProduct[] | null = [];
  #packed = Buffer.alloc(0);
  #unpackedBytes = 0;

  /** Returns the place of the record. */
  add(record: HeldProduct['record']): number {
    if (this.unpacked === null) throw new RangeError('A packed block takes no more records.');
    return this.unpacked.push({ record, view: productView(record) }) - 1;
  }

  pack(): void {
    const json = Buffer.from(JSON.stringify(this.unpacked?.map(({ record }) => record)));
    this.#unpackedBytes = json.length;
    const packed = zstdCompressSync(json, packing);
    // Copied out of the pool that Node's buffers share, most of which is let go again.
    this.#packed = Buffer.allocUnsafeSlow(packed.length);
    packed.copy(this.#packed);
    this.unpacked = null;
  }

  unpack(): HeldProduct[] {
    const chunkSize = Math.max(64, this.#unpackedBytes);
    const json = zstdDecompressSync(this.#packed, { chunkSize }).toString();
    const records: HeldProduct['record'][] = JSON.parse(json);
    return records.map((record) => ({ record, view: productView(record) }));
  }
}

type ReadBlock = (block: Block) => readonly HeldProduct[];

class ArchivedProduct implements HeldProduct {
  readonly #read: ReadBlock;
  readonly #block: Block;
  readonly #place: number;

  constructor(read: ReadBlock, block: Block, place: number) {
    this.#read = read;
    this.#block = block;
    this.#place = place;
  }

  get record() {
    return this.#held().record;
  }

  get view() {
    return this.#held().view;
  }

  #held(): HeldProduct {
    const held = this.#read(this.#block)[this.#place];
    if (held === undefined) throw new RangeError('A block of the archive has lost a record.');
    return held;
  }
}
