/** Reads package-lock.json: which packages there are, and what each needs. */

/**
 * @typedef {{ version?: string, license?: string, integrity?: string, dev?: boolean, link?: boolean,
 *   optional?: boolean, dependencies?: Record<string, string>, optionalDependencies?: Record<string, string>,
 *   peerDependencies?: Record<string, string> }} LockEntry
 * @typedef {{ packages: Record<string, LockEntry> }} LockFile
 * @typedef {{ path: string, name: string, version: string, licence: string, integrity: string | null,
 *   isDev: boolean, isOptional: boolean, needs: string[] }} LockedPackage
 */

/**
 * All packages, each version once, by name. `isDev`: for building and testing alone. `needs` are those, as
 * `name@version`, that it finds.
 * @param {LockFile} lock
 * @returns {LockedPackage[]}
 */
export function lockedPackages({ packages }) {
  /** @type {Map<string, LockedPackage>} */
  const found = new Map();
  for (const [path, entry] of Object.entries(packages)) {
    // Before the first name are the project's own folders.
    const [, ...names] = path.split('node_modules/');
    const name = names.at(-1);
    if (name === undefined || entry.link === true) continue;
    const { version = '', license: licence = 'none told', integrity = null, dev, optional } = entry;
    const flags = { isDev: dev === true, isOptional: optional === true };
    const needs = needsOf(path, packages);
    found.set(`${name}@${version}`, { path, name, version, licence, integrity, ...flags, needs });
  }
  return [...found.values()].sort(
    (a, b) => compare(a.name, b.name) || compare(a.version, b.version),
  );
}

/**
 * What the package at a path needs, as Node looks for it: beside it, then in each folder above.
 * @param {string} path
 * @param {LockFile['packages']} packages
 */
export function needsOf(path, packages) {
  const { dependencies, optionalDependencies, peerDependencies } = packages[path] ?? {};
  const names = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
  const found = names.flatMap((name) => {
    for (let folder = path; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/')))) {
      const entry = packages[`${folder === '' ? '' : `${folder}/`}node_modules/${name}`];
      if (entry !== undefined && entry.link !== true) return [`${name}@${entry.version}`];
      if (folder === '') return [];
    }
  });
  return found.sort(compare);
}

/**
 * An order that is the same whatever the language of the machine.
 * @param {string} a
 * @param {string} b
 */
export function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
