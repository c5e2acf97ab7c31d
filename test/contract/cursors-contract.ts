/** What every store must do with the positions of its readers. */
import { describe, expect, it } from 'vitest';
import type { Cursors } from '../../src/domain/ports.ts';

interface Reopenable {
  store: Cursors;
  /** Closes the store and opens the same one again. */
  reopen(): Promise<Cursors>;
}

export function describeCursors(name: string, open: () => Promise<Reopenable>): void {
  describe(`${name} as keeper of cursors`, () => {
    it('knows no cursor of a reader that never was', async () => {
      const { store } = await open();
      await store.moveCursor('other', 3, 1);
      expect(await store.cursor('index')).toBeNull();
    });

    it('moves a cursor forward and back, and keeps it over a restart', async () => {
      const { store, reopen } = await open();
      await store.moveCursor('index', 7, 1);
      await store.moveCursor('sink', 2, 1);
      await store.moveCursor('index', 4, 2);
      expect(await store.cursor('index')).toBe(4);
      const again = await reopen();
      expect([await again.cursor('index'), await again.cursor('sink')]).toEqual([4, 2]);
    });
  });
}
