/** With a shared log, copies its files before `earshot start` reads them. */
import type { Io } from '../../core/cli/io.ts';
import { checkConfig } from '../../core/config/config.ts';
import { openSharedParts } from '../../store/open-configured.ts';

export async function copySharedFiles(io: Io): Promise<void> {
  const { config, problems } = checkConfig(io, ['data']);
  const { dataDir, sharedLog, diskReserveBytes } = config;
  // Problems are reported with those of all other settings.
  if (problems.length > 0 || !sharedLog || dataDir === undefined) return;
  const shared = await openSharedParts({ dataDir, sharedLog, diskReserveBytes }, io);
  try {
    await shared.syncFiles?.();
  } finally {
    await shared.close();
  }
}
