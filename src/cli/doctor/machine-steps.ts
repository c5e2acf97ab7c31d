/** The doctor's steps on this machine: configuration, data directory, files, clock. */
import { checkClock } from '../../admin/doctor/clock.ts';
import { sessionFileName } from '../../admin/session/session-file.ts';
import { credentialsFileName } from '../../config/endpoint-credentials.ts';
import { checkSecretFiles } from '../../config/secret-file-checks.ts';
import { createStoreChecks } from '../../store/store-checks.ts';
import { acmeSecretFileNames } from '../../tls/acme/state.ts';
import type { Io } from '../io.ts';
import { checkConfiguration, type DoctorSettings } from './doctor-settings.ts';
import type { Step } from './run-steps.ts';

export function machineSteps(settings: DoctorSettings, io: Io): Step[] {
  const { dataDir, catalogueUrl, tokenUrl } = settings;
  const { nowUs, fetch } = io;
  const secretFileNames = [credentialsFileName, sessionFileName, ...acmeSecretFileNames];
  const place = { dataDir, diskReserveBytes: settings.serve?.diskReserveBytes };
  const store = createStoreChecks({ ...place, nowUs, secretFileNames });
  const services = [catalogueUrl, tokenUrl].filter((url) => url !== undefined);
  const urls = services.map((url) => new URL(url).origin);
  const directory = ['data directory'];
  return [
    { name: 'configuration', needs: [], run: async () => checkConfiguration(settings) },
    { name: 'data directory', needs: [], run: store.directory },
    { name: 'owner-only files', needs: directory, run: store.ownerOnly },
    { name: 'secret files', needs: [], run: () => checkSecretFiles(io) },
    { name: 'free space', needs: directory, run: store.freeSpace },
    { name: 'database', needs: directory, run: store.database },
    { name: 'clock', needs: [], run: () => checkClock({ urls, fetch, nowUs }) },
  ];
}
