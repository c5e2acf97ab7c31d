/** Keeps many records in little memory: the newest as they are, older ones packed in blocks. */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { type ProductView, productView } from '../../filter/product-view.ts';
import type { CatalogueProduct, DeletedProduct } from '../products/record.ts';

/** A record and how filters see it. Both are read again when they were packed: some 40 µs each. */
export interface StoredProduct {
  readonly record: CatalogueProduct | DeletedProduct;
  readonly view: ProductView;
}

// Similar records together: 5 kB each become 630 bytes in sixteens, 1,500 alone.
const blockRecords = 16;
// A record and what filters keep of it take some 15 kB of memory.
const unpackedRecords = 4_000;
// A reader of pages, or of the order of changes, returns to the same blocks.
const readBlocksMax = 64;
const packing = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** Creates an empty archive. `keep` takes in a record, which stays for as long as the returned object is referenced. */
export function createRecordArchive(): { keep(record: StoredProduct['record']): StoredProduct } {
  const unpacked: Block[] = [];
  const recent = new Map<Block, readonly StoredProduct[]>();
  let open = new Block();

  const read = (block: Block) => {
    const products = block.unpacked ?? recent.get(block) ?? block.unpack();
    if (block.unpacked !== null) return products;
    recent.delete(block);
    recent.set(block, products);
    const [oldest] = recent.keys();
    if (oldest !== undefined && recent.size > readBlocksMax) recent.delete(oldest);
    return products;
  };

  return {
    keep: (record) => {
      const stored = new ArchivedProduct(read, open, open.add(record));
      if (open.unpacked?.length === blockRecords) {
        unpacked.push(open);
        open = new Block();
        if (unpacked.length > unpackedRecords / blockRecords) unpacked.shift()?.pack();
      }
      return stored;
    },
  };
}

/** Some records, in memory for as long as one of them is referenced. */
class Block {
  /** Null once it is packed. */
  unpacked: StoredProduct[] | null = [];
  #packed = Buffer.alloc(0);
  #unpackedBytes = 0;

  /** Returns the place of the record. */
  add(record: StoredProduct['record']): number {
    if (this.unpacked === null) throw new RangeError('A packed block takes no more records.');
    return this.unpacked.push({ record, view: productView(record) }) - 1;
  }

  pack(): void {
    const json = Buffer.from(JSON.stringify(this.unpacked?.map(({ record }) => record)));
    this.#unpackedBytes = json.length;
    const packed = zstdCompressSync(json, packing);
    // Copied out of the pool that Node's buffers share, most of which is released again.
    this.#packed = Buffer.allocUnsafeSlow(packed.length);
    packed.copy(this.#packed);
    this.unpacked = null;
  }

  unpack(): StoredProduct[] {
    const chunkSize = Math.max(64, this.#unpackedBytes);
    const json = zstdDecompressSync(this.#packed, { chunkSize }).toString();
    const records: StoredProduct['record'][] = JSON.parse(json);
    return records.map((record) => ({ record, view: productView(record) }));
  }
}

/** A class, as closures for each record would take more memory. */
class ArchivedProduct implements StoredProduct {
  readonly #read: (block: Block) => readonly StoredProduct[];
  readonly #block: Block;
  readonly #place: number;

  constructor(read: (block: Block) => readonly StoredProduct[], block: Block, place: number) {
    this.#read = read;
    this.#block = block;
    this.#place = place;
  }

  get record() {
    return this.#stored().record;
  }

  get view() {
    return this.#stored().view;
  }

  #stored(): StoredProduct {
    const stored = this.#read(this.#block)[this.#place];
    if (stored === undefined) throw new RangeError('A block of the archive has lost a record.');
    return stored;
  }
}
