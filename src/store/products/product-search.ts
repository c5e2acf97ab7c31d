/** The parts of the index that search by name and by place, written along with a product's row. */
import type { Database } from 'better-sqlite3';
import { boxesOf } from '../../filter/geometry/shape.ts';
import type { ProductView } from '../../filter/product-view.ts';
import { cloudUnits, heardUnits, sensingDays } from './box-units.ts';

export interface ProductPlace {
  view: ProductView;
  /** Percent. */
  cloudCover: number | null;
  /** True where there cannot be an old one. */
  isNew: boolean;
}

export interface ProductSearchWriter {
  /** Makes a product found by its name, and no longer by the one before. */
  writeName(id: number, old: string | null, name: string | null): void;
  /** Makes a product found by its footprint. */
  writePlace(id: number, place: ProductPlace): void;
  /** Makes a product found no more. `name` is the one it had. */
  remove(id: number, name: string | null): void;
}

/** Prepares the statements, once for a connection. */
export function createProductSearchWriter(database: Database): ProductSearchWriter {
  const addName = database.prepare('INSERT INTO product_name (rowid, name) VALUES (?, ?)');
  const dropName = database.prepare('DELETE FROM product_name WHERE rowid = ?');
  const addFootprint = database.prepare('INSERT INTO product_footprint VALUES (?, ?)');
  const dropFootprint = database.prepare('DELETE FROM product_footprint WHERE id = ?');
  const addBox = database.prepare(
    'INSERT INTO product_box VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const dropBoxes = database.prepare('DELETE FROM product_box WHERE id IN (?, ?)');
  const dropPlace = (id: number) => {
    dropFootprint.run(id);
    dropBoxes.run(2 * id, 2 * id + 1);
  };
  const writeName = (id: number, old: string | null, name: string | null) => {
    if (old === name) return;
    if (old !== null) dropName.run(id);
    if (name !== null) addName.run(id, name);
  };
  return {
    writeName,
    remove: (id, name) => {
      writeName(id, name, null);
      dropPlace(id);
    },
    writePlace: (id, { view, cloudCover, isNew }) => {
      if (!isNew) dropPlace(id);
      const [geometry, shape] = [view.geometry(), view.footprint()];
      if (geometry === null || shape === null) return;
      addFootprint.run(id, JSON.stringify(geometry));
      // Without a sensing time no question about one can be meant for it.
      const days = sensingDays(view.dateUs('ContentDate/Start') ?? 0);
      const heard = heardUnits(id);
      const clouds = cloudUnits(cloudCover);
      const others = [days, days, heard, heard, clouds, clouds];
      boxesOf(shape).forEach(({ west, east, south, north }, part) => {
        addBox.run(2 * id + part, west, east, south, north, ...others);
      });
    },
  };
}
