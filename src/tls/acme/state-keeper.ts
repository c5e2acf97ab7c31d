/** Keeps the renewal state on disk, and in memory while the disk does not take it. */
import { errorText } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { AcmeFolder } from './acme-folder.ts';
import { type RenewalState, type RenewalStates, stateFor, withState } from './renewal-state.ts';

export interface StateKeeper {
  /** Begins anew where the file cannot be used: what it counts must not keep a certificate from coming. */
  read(): Promise<RenewalState>;
  /** Never rejects: a full disk must not make us forget that we have just failed. */
  write(state: RenewalState): Promise<void>;
}

export function createStateKeeper(
  folder: Pick<AcmeFolder, 'readState' | 'writeState'>,
  order: { directoryUrl: string; host: string },
  log: Pick<Logger, 'error'>,
): StateKeeper {
  let unsaved: RenewalStates | null = null;
  let isTold = false;
  const saved = () =>
    folder.readState().catch((error: unknown) => {
      const reason = errorText(error);
      if (!isTold) log.error({ reason }, 'the state of the renewal begins anew');
      isTold = true;
      return null;
    });
  return {
    read: async () => stateFor(order, unsaved ?? (await saved())),
    write: async (state) => {
      unsaved = withState(state, unsaved);
      try {
        await folder.writeState(withState(state, await saved()));
        unsaved = null;
      } catch (error) {
        const reason = errorText(error);
        log.error({ reason }, 'the state of the renewal is kept in memory alone');
      }
    },
  };
}
