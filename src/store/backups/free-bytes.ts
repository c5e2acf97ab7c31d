/** How much this user may still write where a folder is. */
import { statfs } from 'node:fs/promises';

export async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize, frsize } = await statfs(folder);
  // Blocks are counted in `frsize`; `bsize` is the size to transfer, and may be larger (statfs(2)).
  return bavail * (frsize || bsize);
}
