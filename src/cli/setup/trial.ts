/** Carries out `earshot setup --sandbox`: a sandbox and a receiver on this machine, in a folder of their own. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join, relative, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/text.ts';
import { makeDirectory } from '../../host/files.ts';
import { createCertificateAuthority } from '../../sandbox/certificate-authority.ts';
import { demoProject } from '../../sandbox/live-settings.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';
import { databaseFileName } from '../../store/engine/database.ts';
import { openStoreReader } from '../../store/store.ts';
import { nameCalledIn } from '../called-as.ts';
import type { Io } from '../io.ts';
import { painter } from '../output.ts';
import { findRunning, type RunningNote, runningText, stopText } from '../running-receiver.ts';
import { accountDefault } from '../sandbox-flags.ts';
import type { Settings } from './env-file.ts';
import { isChosen, type ReadFlag, type SetupFlags } from './questions.ts';
import { install } from './run-setup.ts';

const folderDefault = 'sandbox-trial';

const headerBegin = '# Written by `earshot setup --sandbox`';

const controlLine = /^# Control port of the sandbox: (\S+:\d+)$/m;

const account = { username: accountDefault, password: accountDefault };

/** Slow enough to be read, and fast enough for a first notification within seconds. */
const productsPerSecond = 2;

/** What the catalogue has published before, so that there is something to count and to query there. */
const past = { durationMs: 604_800_000, productsPerDay: 400 };

/** Where the parts of a trial listen, as `host:port`. */
type Addresses = Record<'service' | 'control' | 'inference' | 'listen' | 'consoleListen', string>;

/**
 * Runs until Ctrl-C, or until the registration with `--no-stay`. The settings of the working folder are not used,
 * unless it is the folder of a trial: that one is continued then.
 */
export async function runTrial(
  io: Io,
  flags: SetupFlags,
  { version, readFlag }: { version: string; readFlag: ReadFlag },
): Promise<void> {
  const folder = trialFolder(io, flags);
  const dataDir = join(folder, 'data');
  const running = await findRunning(dataDir);
  if (running !== null) throw trialRuns(io, folder, running);
  const earlier = readEarlier(io, folder);
  const addresses = { ...(await newAddresses()), ...earlier?.addresses };
  await refuseTaken(addresses);
  const now = () => io.nowUs() / 1000;
  const certificate = await createTrialCertificate(folder, now);
  const sandbox = await startSandbox({
    ...{ account, now, ratePerSecond: productsPerSecond, past },
    ...{ modifiedShare: 0.2, deletedShare: 0.1 },
    // The products of the earlier run are in the log: others must not have the same ids.
    ...(earlier === null ? {} : { seed: Math.trunc(io.random() * 2 ** 31) }),
    serviceListen: addresses.service,
    controlListen: addresses.control,
    inferenceListen: addresses.inference,
    trustedCaPems: [certificate.authorityPem],
  });
  try {
    const { files } = certificate;
    const { listen, consoleListen } = addresses;
    const publicUrl = `https://localhost:${portOf(listen)}`;
    const trial = { dataDir, files, sandbox, account, publicUrl, listen, consoleListen };
    const settings = { ...trialSettings(trial), ...earlier?.settings };
    const chosen = await filterFlags(flags, { dataDir, readFlag });
    const trialFlags = { ...flags, ...chosen, yes: true, force: true } as const;
    if (!flags.dryRun) {
      makeDirectory(folder);
      await certificate.write();
      showCommands(io, folder, sandbox.controlUrl);
    }
    const dir = flags.dir === undefined ? '' : ` --dir ${printable(flags.dir)}`;
    const farewell = `The trial has ended. To continue it: \`earshot setup --sandbox${dir}\`. To remove all of it: rm -r ${shown(io, folder)}`;
    const header = `${headerBegin.slice(2)}, which continues this trial.\n# Control port of the sandbox: ${addresses.control}`;
    const plan = { folder, settings, dropped: [], header, farewell };
    await install(io, { ...plan, flags: trialFlags, version });
  } finally {
    await sandbox.close();
  }
}

/** The folder of the trial: the working folder where that is one. A trial inside another one is refused. */
function trialFolder(io: Io, { dir }: SetupFlags): string {
  const here = resolve(io.workingDir);
  const folder =
    dir === undefined && isTrial(io, here) ? here : resolve(here, dir ?? folderDefault);
  for (let above = dirname(folder); above !== dirname(above); above = dirname(above)) {
    if (!isTrial(io, above)) continue;
    throw new AppError(
      'conflict',
      `${folder} lies in the trial ${above}, and a trial inside a trial is not created.`,
      {
        advice: `To continue that one: ${inFolder(io, above, 'setup --sandbox')}. For another one, name a folder outside it with --dir.`,
      },
    );
  }
  return folder;
}

function isTrial(io: Io, folder: string): boolean {
  const path = join(folder, '.env');
  return existsSync(path) && io.readFile(path).startsWith(headerBegin);
}

/** The `.env` of an earlier run; null where there is none yet. Throws `conflict` for settings of another origin. */
function readEarlier(io: Io, folder: string) {
  const path = join(folder, '.env');
  if (!existsSync(path)) return null;
  if (!isTrial(io, folder)) {
    throw new AppError(
      'conflict',
      `${path} was not written by \`earshot setup --sandbox\`, so it is not replaced.`,
      { advice: 'Name another folder: --dir trial-2.' },
    );
  }
  const text = io.readFile(path);
  const present = parseEnv(text) as Settings;
  const { EARSHOT_DATA_DIR, EARSHOT_TLS_CERT, EARSHOT_TLS_KEY, EARSHOT_PROBE_CA, ...rest } =
    present;
  // Paths are those of the folder as it is called now.
  const settings = Object.entries(rest).filter(([name]) => name.startsWith('EARSHOT_'));
  const addresses = {
    service: hostOf(present.EARSHOT_CATALOGUE_URL),
    control: controlLine.exec(text)?.[1],
    inference: hostOf(present.EARSHOT_INFERENCE_URL),
    listen: present.EARSHOT_LISTEN,
    consoleListen: present.EARSHOT_CONSOLE_LISTEN,
  };
  const known = Object.entries(addresses).filter(([, address]) => address !== undefined);
  return {
    settings: Object.fromEntries(settings),
    addresses: Object.fromEntries(known) as Partial<Addresses>,
  };
}

/** What the flags choose; without them, what was registered last; at first, SENTINEL-2. */
async function filterFlags(
  flags: SetupFlags,
  { dataDir, readFlag }: { dataDir: string; readFlag: ReadFlag },
): Promise<Partial<SetupFlags>> {
  if (isChosen(flags) || (await loadSubscriptionsFile(dirname(dataDir))) !== null) return {};
  const first = { collection: readFlag('collection', 'SENTINEL-2') } as Partial<SetupFlags>;
  if (!existsSync(join(dataDir, databaseFileName))) return first;
  const reader = openStoreReader(dataDir);
  try {
    const registered = await reader.administration.registrations();
    const wanted = flags.subscription ?? registered[0]?.name;
    const one = registered.find(({ name }) => name === wanted);
    return one === undefined ? first : { subscription: one.name };
  } finally {
    await reader.close();
  }
}

function trialRuns(io: Io, folder: string, running: RunningNote | 'unknown'): AppError {
  return new AppError(
    'conflict',
    `The trial in ${folder} is running already: ${runningText(running)}. Nothing was changed.`,
    {
      advice: `Use it in this terminal: ${inFolder(io, folder, 'status')}. To end it: Ctrl-C in its terminal, or ${stopText(running)}. For a second trial, name another folder: --dir trial-2.`,
    },
  );
}

/** The usual ports of a sandbox and a receiver, or others where they are taken. */
async function newAddresses(): Promise<Addresses> {
  const at = async (port: number) => `127.0.0.1:${(await isFree(port)) ? port : await anyPort()}`;
  const [service, control, inference] = [await at(8091), await at(8090), await at(8092)];
  return { service, control, inference, listen: await at(8443), consoleListen: await at(8080) };
}

/** The addresses of an earlier run are used again; another program may have them now. */
async function refuseTaken(addresses: Addresses): Promise<void> {
  for (const address of Object.values(addresses)) {
    // The private listener may be `off`.
    if (Number.isNaN(portOf(address)) || (await isFree(portOf(address)))) continue;
    throw new AppError(
      'conflict',
      `Another program uses port ${portOf(address)} of this trial, so nothing was started.`,
      {
        advice:
          'End that program (a sandbox that was started separately?), or start another trial: --dir trial-2.',
      },
    );
  }
}

const isFree = async (port: number) => (await listenOnce(port)) !== null;

async function anyPort(): Promise<number> {
  const port = await listenOnce(0);
  if (port === null) throw new AppError('unavailable', 'There is no free port on this machine.');
  return port;
}

/** The port of loopback where it is free, or any one for 0; null where it is taken. */
async function listenOnce(port: number): Promise<number | null> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    return address === null || typeof address === 'string' ? null : address.port;
  } catch {
    return null;
  } finally {
    server.close();
    await once(server, 'close').catch(() => undefined);
  }
}

function showCommands(io: Io, folder: string, controlUrl: string): void {
  const paint = painter(io, io.stderr);
  io.stderr.write(`A sandbox plays the catalogue: no account is needed. Watch and control it at ${controlUrl}.
In a second terminal, every command works on this trial:
  ${paint('bold', inFolder(io, folder, 'status'))}
`);
}

/** A command for a shell in the working folder, to be run in the folder of the trial. */
function inFolder(io: Io, folder: string, command: string): string {
  const program = printable(nameCalledIn(folder, io));
  return `${folder === resolve(io.workingDir) ? '' : `cd ${shown(io, folder)} && `}${program} ${command}`;
}

function shown(io: Io, folder: string): string {
  return printable(relative(io.workingDir, folder) || folder);
}

const portOf = (address: string) => Number(address.split(':').at(-1));

const hostOf = (url: string | undefined) => URL.parse(url ?? '')?.host;

interface TrialCertificate {
  /** The root, which the sandbox is to trust. */
  authorityPem: string;
  files: { cert: string; key: string; ca: string };
  /** Writes the files. The authority's own key is not kept. */
  write(): Promise<void>;
}

/** A certificate for this machine, from an authority of its own, with files in the folder. */
export async function createTrialCertificate(
  folder: string,
  now: () => number,
): Promise<TrialCertificate> {
  const authority = await createCertificateAuthority({ now });
  const certificate = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const file = (name: string) => join(folder, name);
  const files = { cert: file('certificate.pem'), key: file('key.pem'), ca: file('authority.pem') };
  return {
    authorityPem: authority.certificatePem,
    files,
    write: async () => {
      await writeFile(files.cert, certificate.certificatePem);
      await writeFile(files.key, certificate.keyPem, { mode: 0o600 });
      await writeFile(files.ca, authority.certificatePem);
    },
  };
}

/** The variables for receiver and commands. */
export function trialSettings(trial: {
  dataDir: string;
  files: TrialCertificate['files'];
  sandbox: Pick<Sandbox, 'catalogueUrl' | 'tokenUrl' | 'inferenceUrl'>;
  account: { username: string; password: string };
  publicUrl: string;
  /** `host:port`. */
  listen: string;
  consoleListen: string;
}): Record<string, string> {
  const { dataDir, files, sandbox, account, publicUrl, listen, consoleListen } = trial;
  return {
    EARSHOT_PUBLIC_URL: publicUrl,
    EARSHOT_LISTEN: listen,
    EARSHOT_CONSOLE_LISTEN: consoleListen,
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_TLS: 'files',
    EARSHOT_TLS_CERT: files.cert,
    EARSHOT_TLS_KEY: files.key,
    EARSHOT_PROBE_CA: files.ca,
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_ACCOUNT_USERNAME: account.username,
    EARSHOT_ACCOUNT_PASSWORD: account.password,
    EARSHOT_INFERENCE_URL: sandbox.inferenceUrl,
    EARSHOT_INFERENCE_API_KEY: demoProject.key,
    EARSHOT_INFERENCE_MODEL: demoProject.models[0] ?? '',
  };
}
