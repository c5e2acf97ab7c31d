/** Reads the packages and their dependencies from package-lock.json. */

/**
 * @typedef {{ version?: string, license?: string, integrity?: string, dev?: boolean, link?: boolean,
 *   optional?: boolean, dependencies?: Record<string, string>, optionalDependencies?: Record<string, string>,
 *   peerDependencies?: Record<string, string> }} LockEntry
 * @typedef {{ packages: Record<string, LockEntry> }} LockFile
 * @typedef {{ path: string, name: string, version: string, licence: string, integrity: string | null,
 *   isDev: boolean, isOptional: boolean, dependencies: string[] }} LockedPackage
 */

/**
 * Returns each version of each package once, sorted by name. `isDev`: only for building and testing. `dependencies`
 * are the resolved ones, as `name@version`.
 * @param {LockFile} lock
 * @returns {LockedPackage[]}
 */
export function lockedPackages({ packages }) {
  /** @type {Map<string, LockedPackage>} */
  const found = new Map();
  for (const [path, entry] of Object.entries(packages)) {
    // The part before the first name is a folder of the project.
    const [, ...names] = path.split('node_modules/');
    const name = names.at(-1);
    if (name === undefined || entry.link === true) continue;
    const { version = '', license: licence = 'unknown', integrity = null, dev, optional } = entry;
    const flags = { isDev: dev === true, isOptional: optional === true };
    const dependencies = dependenciesOf(path, packages);
    found.set(`${name}@${version}`, {
      path,
      name,
      version,
      licence,
      integrity,
      ...flags,
      dependencies,
    });
  }
  return [...found.values()].sort(
    (a, b) => compare(a.name, b.name) || compare(a.version, b.version),
  );
}

/**
 * Returns the dependencies of the package at a path, resolved like Node: next to it, then in each parent folder.
 * @param {string} path
 * @param {LockFile['packages']} packages
 */
export function dependenciesOf(path, packages) {
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
 * Compares strings independently of the locale.
 * @param {string} a
 * @param {string} b
 */
export function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
