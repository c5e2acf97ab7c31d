/**
 * Prints the size and the fragmentation of the code: `npm run shape [-- <revision>]` compares the
 * working tree with a revision, by default the last commit. Lines of code, also by folder, are those
 * without comments, blank lines and imports. `--list` prints the files that have one importer, in
 * their own folder, and fewer than 80 lines.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const arguments_ = process.argv.slice(2);
const revision = arguments_.find((argument) => !argument.startsWith('-')) ?? 'HEAD';

/** @param {string} line */
const print = (line) => process.stdout.write(`${line}\n`);
/** @param {string[]} words */
const git = (...words) =>
  execFileSync('git', words, {
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
    stdio: ['pipe', 'pipe', 'ignore'],
  });

/**
 * Returns the text of every TypeScript file by path, of a revision or of the working tree.
 * @param {string | null} revisionOrNull
 */
function readFiles(revisionOrNull) {
  const folders = ['src', 'test', 'bench'];
  if (revisionOrNull === null) {
    const listed = git('ls-files', '-co', '--exclude-standard', '--deduplicate', ...folders);
    const deleted = new Set(git('ls-files', '-d', ...folders).split('\n'));
    const paths = listed.split('\n').filter((path) => isCode(path) && !deleted.has(path));
    return new Map(paths.map((path) => [path, readFileSync(path, 'utf8')]));
  }
  const listed = git('ls-tree', '-r', '--name-only', revisionOrNull, ...folders).split('\n');
  return new Map(
    listed.filter(isCode).map((path) => [path, git('show', `${revisionOrNull}:${path}`)]),
  );
}

/** @param {string} path */
const isCode = (path) => /\.tsx?$/.test(path);
/** @param {string} text */
const linesOf = (text) => text.split('\n').length - 1;

/**
 * Counts lines of code: no comments, blank lines and imports.
 * @param {string} text
 */
const codeLinesOf = (text) =>
  text
    .replace(/^ *\/\*[\s\S]*?\*\/ *$/gm, '')
    .replace(/^import\b[^;]*;$/gm, '')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.trim().startsWith('//')).length;

/**
 * Returns the lines of code by folder, at most two deep, such as `src/admin`.
 * @param {Map<string, string>} files
 */
function codeByFolder(files) {
  /** @type {Record<string, number>} */
  const sums = {};
  for (const [path, text] of files) {
    const parts = dirname(path).split('/');
    const folder = parts.slice(0, 2).join('/');
    for (const name of new Set([parts[0] ?? '', folder])) {
      sums[name] = (sums[name] ?? 0) + codeLinesOf(text);
    }
  }
  return sums;
}

const imported = /(?:from|import)\s*\(?\s*'(\.[^']+)'|new URL\('(\.[^']+\.ts)'/g;

/**
 * Returns the importers of each file by path, including imports of types.
 * @param {Map<string, string>} files
 */
function importersOf(files) {
  const importers = new Map([...files.keys()].map((path) => [path, new Set()]));
  for (const [path, text] of files) {
    for (const [, quoted, url] of text.matchAll(imported)) {
      const target = quoted ?? url ?? '';
      importers.get(normalize(join(dirname(path), target)))?.add(path);
    }
  }
  return importers;
}

/**
 * Counts the source files outside the folder of each feature that import from it, without the list of features.
 * @param {Map<string, string>} files
 */
function outsideByFeature(files) {
  /** @type {Record<string, Set<string>>} */
  const outside = {};
  for (const [path, importers] of importersOf(files)) {
    const [folder, feature] = /^src\/features\/([^/]+)\//.exec(path) ?? [];
    if (folder === undefined || feature === undefined) continue;
    const others = [...importers].filter((by) => by.startsWith('src/') && by !== 'src/app.ts');
    outside[feature] ??= new Set();
    for (const by of others) if (!by.startsWith(folder)) outside[feature].add(by);
  }
  return Object.fromEntries(Object.entries(outside).map(([name, { size }]) => [name, size]));
}

/** @param {Map<string, string>} files */
function measure(files) {
  /** @param {string} folder */
  const of = (folder) => new Map([...files].filter(([path]) => path.startsWith(`${folder}/`)));
  /** @param {string} folder */
  const total = (folder) => [...of(folder).values()].reduce((sum, text) => sum + linesOf(text), 0);
  const source = of('src');
  const sizes = [...source.values()].map(linesOf).sort((a, b) => a - b);
  const single = [...importersOf(source)].filter(([path, by]) => {
    const [importer] = by;
    return by.size === 1 && dirname(importer) === dirname(path);
  });
  const small = single.filter(([path]) => linesOf(source.get(path) ?? '') < 80);
  return {
    small,
    /** @type {Record<string, number>} */
    rows: {
      'source lines': total('src'),
      'source files': sizes.length,
      'median lines of a source file': sizes[Math.floor(sizes.length / 2)] ?? 0,
      'files over 400 lines': sizes.filter((size) => size > 400).length,
      'one importer, same folder': single.length,
      'the same, under 80 lines': small.length,
      'test lines': total('test'),
      'test files': of('test').size,
      'bench lines': total('bench'),
      'bench files': of('bench').size,
    },
  };
}

/**
 * @param {Record<string, number>} then
 * @param {Record<string, number>} now
 */
function printRows(then, now) {
  for (const name of new Set([...Object.keys(now), ...Object.keys(then)])) {
    const [old, value] = [then[name] ?? 0, now[name] ?? 0];
    const ratio = old === 0 ? '' : (value / old).toFixed(2);
    print(
      `${name.padEnd(32)}${String(old).padStart(10)}${String(value).padStart(10)}${ratio.padStart(8)}`,
    );
  }
}

const files = readFiles(null);
const now = measure(files);
if (arguments_.includes('--list')) {
  for (const [path, [importer]] of now.small) print(`${path}  <-  ${importer}`);
} else {
  const filesThen = readFiles(revision);
  print(`${''.padEnd(32)}${revision.padStart(10)}${'now'.padStart(10)}${'ratio'.padStart(8)}`);
  printRows(measure(filesThen).rows, now.rows);
  print('\nlines of code');
  printRows(codeByFolder(filesThen), codeByFolder(files));
  print('\nfiles outside the folder that import a feature');
  printRows(outsideByFeature(filesThen), outsideByFeature(files));
}
