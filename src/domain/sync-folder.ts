/** Makes the names in a folder last. */
import { open } from 'node:fs/promises';

/** Without it a power cut may bring an old name back, or take a new one. Some file systems have no such thing. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  await folder.sync().catch(() => undefined);
  await folder.close();
}
