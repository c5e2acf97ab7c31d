/** Opens the account for one command, and closes it in any case. */
import { loadAccountConfig } from '../config/config.ts';
import type { AccountUse, OpenedAccount } from './account.ts';
import type { Io } from './io.ts';

/** Reads the configuration, holds the account while `use` runs. */
export async function withAccount(
  io: Io,
  how: AccountUse,
  use: (account: OpenedAccount) => Promise<void>,
): Promise<void> {
  const config = loadAccountConfig(io);
  const { openAccount } = await import('./account.ts');
  const account = await openAccount(config, io, how);
  try {
    await use(account);
  } finally {
    await account.close();
  }
}
