/** Carries out `earshot setup --sandbox`: a sandbox and a receiver on this machine, in a folder of their own. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, relative, resolve } from 'node:path';
import { AppError } from '../../domain/app-error.ts';
import { makeDirectory } from '../../domain/make-directory.ts';
import { printable } from '../../domain/printable.ts';
import { startSandbox } from '../../sandbox/sandbox.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { accountDefault } from '../sandbox-flags.ts';
import { createTrialCertificate, trialSettings } from '../trial-settings.ts';
import { isChosen } from './ask-filter.ts';
import { install } from './run-setup.ts';
import type { ReadFlag, SetupFlags } from './setup-flags.ts';

const folderDefault = 'sandbox-trial';
const header = 'Written by `earshot setup --sandbox`, and replaced by the next one.';
const account = { username: accountDefault, password: accountDefault };
/** Slow enough to be read, and fast enough for a first notification within seconds. */
const productsPerSecond = 2;
/** What the catalogue has published before, so that there is something to count and to query there. */
const past = { durationMs: 604_800_000, productsPerDay: 400 };

/** Runs until Ctrl-C, or until the registration with `--no-stay`. The settings of the working folder are not used. */
export async function runTrial(
  io: Io,
  flags: SetupFlags,
  { version, readFlag }: { version: string; readFlag: ReadFlag },
): Promise<void> {
  const folder = resolve(io.workingDir, flags.dir ?? folderDefault);
  refuseOthers(io, folder);
  const [service, control, inference, listen, consoleListen] = await addresses();
  const now = () => io.nowUs() / 1000;
  const certificate = await createTrialCertificate(folder, now);
  const sandbox = await startSandbox({
    ...{ account, now, ratePerSecond: productsPerSecond, past },
    ...{ modifiedShare: 0.2, deletedShare: 0.1 },
    ...{ serviceListen: service, controlListen: control, inferenceListen: inference },
    trustedCaPems: [certificate.authorityPem],
  });
  try {
    const { files } = certificate;
    const dataDir = join(folder, 'data');
    const publicUrl = `https://localhost:${listen.split(':').at(-1)}`;
    const settings = {
      ...trialSettings({ dataDir, files, sandbox, account, publicUrl, listen, consoleListen }),
      // People read along here; what needs them is logged all the same.
      EARSHOT_LOG_LEVEL: 'warn',
    };
    const chosen = isChosen(flags) ? {} : { collection: readFlag('collection', 'SENTINEL-2') };
    const trialFlags = {
      ...flags,
      ...(chosen as Partial<SetupFlags>),
      yes: true,
      force: true,
    } as const;
    if (!flags.dryRun) {
      makeDirectory(folder);
      await certificate.write();
      showCommands(io, folder, sandbox.controlUrl);
    }
    const farewell = `The trial has ended. Again: npx earshot setup --sandbox. To remove all of it: rm -r ${shown(io, folder)}`;
    const plan = { folder, settings, dropped: [], header, farewell };
    await install(io, { ...plan, flags: trialFlags, version });
  } finally {
    await sandbox.close();
  }
}

/** A folder with settings of another origin is not touched. */
function refuseOthers(io: Io, folder: string): void {
  const path = join(folder, '.env');
  if (!existsSync(path) || io.readFile(path).startsWith(`# ${header}`)) return;
  throw new AppError(
    'conflict',
    `${path} was not written by \`earshot setup --sandbox\`, so it is not replaced. Name another folder: --dir trial-2.`,
  );
}

/** The usual ports of a sandbox and a receiver, or others where they are taken. */
async function addresses(): Promise<[string, string, string, string, string]> {
  const at = async (port: number) => `127.0.0.1:${await freePort(port)}`;
  return [await at(8091), await at(8090), await at(8092), await at(8443), await at(8080)];
}

/** This port of loopback, or any free one. */
async function freePort(preferred: number): Promise<number> {
  const server = createServer();
  try {
    server.listen(preferred, '127.0.0.1');
    await once(server, 'listening');
    return preferred;
  } catch {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return address.port;
  } finally {
    server.close();
    await once(server, 'close');
  }
}

function showCommands(io: Io, folder: string, controlUrl: string): void {
  const paint = painter(io, io.stderr);
  io.stderr.write(`A sandbox plays the catalogue: no account is needed. Watch and control it at ${controlUrl}.
In a second terminal, every command works on this trial:
  ${paint('bold', `cd ${shown(io, folder)} && npx earshot status`)}
`);
}

function shown(io: Io, folder: string): string {
  return printable(relative(io.workingDir, folder) || '.');
}
