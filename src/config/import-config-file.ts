/** Loads a user's `earshot.config.ts`, in which 'earshot' means this program wherever the file lies. */
import { registerHooks } from 'node:module';

/** What the file may import as 'earshot': the sources in a checkout, else the build. */
const ownIndex = new URL(
  import.meta.url.endsWith('.ts') ? '../index.ts' : '../index.js',
  import.meta.url,
).href;

const typescriptFile = /\.ts(\?|$)/;

/**
 * Imports the file. While it loads, the package name leads to this program: a folder
 * such as `/etc/earshot` has no packages to find it in, and a checkout has no build. Other names are left
 * to Node. The file and what it imports in TypeScript are ES modules, whatever a `package.json` beside
 * them says: `npm init` writes one that makes them CommonJS.
 */
export async function importConfigFile(address: string): Promise<unknown> {
  const hooks = registerHooks({
    resolve: (specifier, context, nextResolve) => {
      if (specifier === 'earshot') return { url: ownIndex, shortCircuit: true };
      const resolved = nextResolve(specifier, context);
      return typescriptFile.test(resolved.url)
        ? { ...resolved, format: 'module-typescript' }
        : resolved;
    },
  });
  try {
    return await import(address);
  } finally {
    hooks.deregister();
  }
}
