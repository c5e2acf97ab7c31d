/** Stores many records in little memory: the newest unpacked, older ones compressed in blocks. */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { type ProductView, productView } from '../../filter/product-view.ts';
import type { CatalogueProduct } from '../products/record.ts';

/** A record and its filter view. Reading a packed record takes about 40 µs. */
export interface StoredProduct {
  readonly record: CatalogueProduct;
  readonly view: ProductView;
}

// Blocks compress better: a record of 5 kB takes 630 bytes in a block of 16, 1,500 bytes alone.
const blockRecords = 16;
// A record with its view takes about 15 kB of memory.
const unpackedRecords = 4_000;
// Readers of pages, or of the order of changes, read the same blocks repeatedly.
const readBlocksMax = 64;
const packing = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** Creates an empty archive. A record added with `keep` stays while the returned object is referenced. */
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

/** A block of records, in memory while one of them is referenced. */
class Block {
  /** Null after packing. */
  unpacked: StoredProduct[] | null = [];
  #packed = Buffer.alloc(0);
  #unpackedBytes = 0;

  /** Returns the index of the record. */
  add(record: StoredProduct['record']): number {
    if (this.unpacked === null) throw new RangeError('A packed block cannot accept records.');
    return this.unpacked.push({ record, view: productView(record) }) - 1;
  }

  pack(): void {
    const json = Buffer.from(JSON.stringify(this.unpacked?.map(({ record }) => record)));
    this.#unpackedBytes = json.length;
    const packed = zstdCompressSync(json, packing);
    // Copied, so that Node's shared buffer pool can be released.
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

/** A class, because closures per record would take more memory. */
class ArchivedProduct implements StoredProduct {
  readonly #read: (block: Block) => readonly StoredProduct[];
  readonly #block: Block;
  readonly #index: number;

  constructor(read: (block: Block) => readonly StoredProduct[], block: Block, index: number) {
    this.#read = read;
    this.#block = block;
    this.#index = index;
  }

  get record() {
    return this.#stored().record;
  }

  get view() {
    return this.#stored().view;
  }

  #stored(): StoredProduct {
    const stored = this.#read(this.#block)[this.#index];
    if (stored === undefined) throw new RangeError('A record is missing in its archive block.');
    return stored;
  }
}
