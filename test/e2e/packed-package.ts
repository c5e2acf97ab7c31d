/** The package as it is published: built and packed from a copy, installed into an empty folder. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** Files of a checkout that no build creates. */
const sources = [
  'package.json',
  '.npmrc',
  '.env.example',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'tsconfig.json',
  'tsconfig.build.json',
  'deploy',
  'docs',
  'examples',
  'runtime/package.json',
  'scripts',
  'src',
];
/** Files that may exist in a developer's folder, and must never be published. */
const litter = [
  '.env',
  'earshot.config.ts',
  'data/endpoint-credentials.json',
  'test/some.test.ts',
  'bench/bench.ts',
  'dist/left-over.js',
  'examples/mounted-receiver/data/earshot.db',
  'examples/mounted-receiver/node_modules/x/index.js',
];

export interface PackedPackage {
  tarball: string;
  /** Paths of the files in it. */
  files: string[];
  /** Temporary folder with all files created here. */
  folder: string;
  remove(): void;
}

/** Runs a program with this Node first on the path, without npm's variables about the checkout. */
export async function runWith(
  cwd: string,
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<string> {
  const inherited = Object.entries(process.env).filter(
    ([name]) =>
      !/^npm_(config_(?!cache|registry|userconfig)|package|lifecycle)|^INIT_CWD$/i.test(name),
  );
  const PATH = `${dirname(process.execPath)}:${process.env.PATH}`;
  const { stdout } = await run(command, args, {
    cwd,
    env: { ...Object.fromEntries(inherited), PATH, ...env },
    timeout: 100_000,
    maxBuffer: 2 ** 26,
  });
  return stdout;
}

/** Packs a copy of the checkout, because other tests may use the checkout at the same time. */
export async function packPackage(): Promise<PackedPackage> {
  const folder = mkdtempSync(join(tmpdir(), 'earshot-package-'));
  const copy = join(folder, 'checkout');
  mkdirSync(join(copy, 'runtime'), { recursive: true });
  for (const path of sources) {
    const filter = (file: string) => !file.includes('/node_modules');
    cpSync(join(root, path), join(copy, path), { recursive: true, filter });
  }
  for (const path of litter) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    writeFileSync(join(copy, path), '// must not be published\n');
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  await runWith(copy, 'npm', ['run', 'build']);
  const packed = await runWith(copy, 'npm', ['pack', '--json', '--pack-destination', folder]);
  const [{ filename, files }] = JSON.parse(packed) as [
    { filename: string; files: { path: string }[] },
  ];
  return {
    tarball: join(folder, filename),
    files: files.map(({ path }) => path),
    folder,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Installs the package into a folder, as a user does. */
export async function installPackage(folder: string, tarball: string): Promise<void> {
  const flags = ['--prefer-offline', '--no-audit', '--no-fund'];
  await runWith(folder, 'npm', ['install', ...flags, tarball]);
}
