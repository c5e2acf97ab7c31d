/** Steps of the doctor on this machine and at the endpoint, from the configuration to the receiver's answer. */
import { dirname, join } from 'node:path';
import { checkClock } from '../../admin/account-checks.ts';
import {
  checkAddresses,
  checkEndpoint,
  checkPublicUrl,
  resolveName,
} from '../../admin/endpoint-checks.ts';
import { createEndpointProbe, hostOf } from '../../admin/endpoint-probe.ts';
import { sessionFileName } from '../../admin/session.ts';
import type { Io } from '../../core/cli/io.ts';
import { credentialsFileName } from '../../core/config/endpoint-credentials.ts';
import { checkSecretFiles, type Step } from '../../core/doctor/steps.ts';
import { isLoopbackHost } from '../../core/http/network-address.ts';
import { finding, situationAt } from '../../core/terms/evaluation.ts';
import { defaultSubscriptionName, endpointOf } from '../../core/terms/subscription.ts';
import { databaseFileName } from '../../store/engine/database.ts';
import { diskSpace } from '../../store/engine/disk-limit.ts';
import { evaluateDisk } from '../../store/status.ts';
import { createStoreChecks, nearestExisting } from '../../store/store-checks.ts';
import { checkConfiguration, type OwnSettings } from './settings.ts';

export function machineSteps(settings: OwnSettings, io: Io): Step[] {
  const { dataDir, catalogueUrl, tokenUrl, serve } = settings;
  const { nowUs, fetch, env, workingDir, settings: all } = io;
  const within = (names: readonly string[]) => names.map((name) => join(dataDir, name));
  const shared = io.features.flatMap(({ sharedFiles = [] }) => sharedFiles);
  const secretFiles = within([
    ...[credentialsFileName, sessionFileName],
    ...new Set(shared.flatMap(({ name }) => [dirname(name), name])),
  ]);
  const databaseFiles = within(['', '-wal', '-shm'].map((end) => `${databaseFileName}${end}`));
  const files = { env, settings: all, workingDir, secretFiles, databaseFiles };
  const store = createStoreChecks(dataDir);
  const services = [catalogueUrl, tokenUrl].filter((url) => url !== undefined);
  const urls = services.map((url) => new URL(url).origin);
  return [
    { name: 'configuration', needs: [], run: async () => checkConfiguration(settings) },
    { name: 'data directory', needs: [], run: store.directory },
    { name: 'secret files', needs: [], run: () => checkSecretFiles(files) },
    {
      name: 'free space',
      needs: ['data directory'],
      run: async () => {
        const place = { dataDir: await nearestExisting(dataDir) };
        const space = diskSpace({ ...place, diskReserveBytes: serve?.diskReserveBytes });
        return [{ check: 'free space', ...evaluateDisk(space, situationAt(nowUs())) }];
      },
    },
    { name: 'database', needs: ['data directory'], run: store.database },
    { name: 'clock', needs: [], run: async () => [await checkClock(urls, { fetch, nowUs })] },
  ];
}

export function endpointSteps(settings: OwnSettings, io: Io): Step[] {
  if (!settings.hasEndpoint) {
    const text = 'Not needed, because all subscriptions are pull.';
    return [
      { name: 'endpoint', needs: [], run: async () => [finding('endpoint', 'unknown', text)] },
    ];
  }
  const { nowUs } = io;
  const { publicUrl = '', serve, account, probeWithExtra: withExtra } = settings;
  const endpoint = endpointOf(publicUrl, defaultSubscriptionName);
  const pairs = account?.endpoint.pairs ?? serve?.credentials.pairs ?? [];
  const publicly = createEndpointProbe();
  const isLocal = [publicUrl, settings.catalogueUrl].every(isOfThisMachine);
  return [
    { name: 'public URL', needs: [], run: async () => checkPublicUrl(settings.publicUrl) },
    {
      name: 'public address',
      needs: ['public URL'],
      run: async () => {
        if (isLocal) return [finding('public address', 'ok', 'The catalogue is on this machine.')];
        const host = hostOf(new URL(publicUrl));
        return [checkAddresses(host, await resolveName(host), withExtra !== null)];
      },
    },
    {
      name: 'endpoint',
      needs: ['public URL', 'public address'],
      run: () => checkEndpoint({ endpoint, publicly, withExtra, isLocal, pairs, nowUs }),
    },
  ];
}

function isOfThisMachine(text: string | undefined): boolean {
  const url = URL.parse(text ?? '');
  return url !== null && isLoopbackHost(hostOf(url));
}
