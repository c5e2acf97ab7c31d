/** Opens the account for one command, and closes it in any case. */
import { readCompleteAccountConfig } from '../config/account-config.ts';
import type { OpenedAccount } from './account.ts';
import type { Io } from './io.ts';

/** Reads the configuration, holds the account while `use` runs. */
export async function withAccount(
  io: Io,
  use: (account: OpenedAccount) => Promise<void>,
): Promise<void> {
  const config = readCompleteAccountConfig(io);
  const { openAccount } = await import('./account.ts');
  const account = await openAccount(config, io, 'unused');
  try {
    await use(account);
  } finally {
    await account.close();
  }
}
