/** What the watchdog and the status are told of a certificate from an authority, before and without the first one. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { watchProbes } from '../../src/cli/start/watch-probes.ts';
import { openAcmeFolder, stateFor, withState } from '../../src/tls/acme/state.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const order = { directoryUrl: 'https://authority.example/dir', host: 'earshot.example.org' };
const atUs = 1_795_000_000_000_000;

it('tells how the tries for a first certificate end', async () => {
  const dataDir = temporaryDirectory();
  mkdirSync(join(dataDir, 'acme'), { mode: 0o700 });
  const tls = {
    ...({ kind: 'acme', ...order, email: undefined, challenge: 'http-01' } as const),
    ...{ httpListen: { host: '127.0.0.1', port: 1 }, extraCaPem: undefined, eab: undefined },
  };
  const intake = { checkWritable: async () => undefined };
  const { certificate } = watchProbes({ dataDir, tls }, intake, { nowUs: () => atUs });
  const untried = { lastAttemptAtUs: null, lastSuccessAtUs: null, lastFailure: null };
  expect(await certificate()).toEqual({ notAfterUs: null, lifetimeUs: null, ...untried });
  const folder = openAcmeFolder(dataDir);
  const failed = {
    ...stateFor(order, null),
    ...{ failures: 1, lastAttemptAtUs: atUs },
    lastFailure: { atUs, message: 'No such name.', isProof: true },
  };
  await folder.writeState(withState(failed, null));
  expect(await certificate()).toMatchObject({
    notAfterUs: null,
    lastAttemptAtUs: atUs,
    lastFailure: 'No such name.',
  });
});
