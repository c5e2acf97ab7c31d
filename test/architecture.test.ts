import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const source = join(root, 'src');

/** Folders that any part may import. `host` is the machine: files, and child processes. */
const shared = ['domain', 'filter', 'http', 'host'];
/**
 * Parts of the program. They do not import each other, except that `config` reads the settings of
 * sinks.
 */
const parts =
  'config store shared-log tls receiver admin reconcile summary state watch sinks console'.split(
    ' ',
  );

/** Design, section 2: the folders that a folder may import, in addition to itself. */
const allowed: Record<string, readonly string[]> = {
  domain: [],
  filter: ['domain'],
  host: ['domain'],
  http: ['domain', 'filter'],
  places: ['domain', 'filter'],
  ...Object.fromEntries(parts.map((part) => [part, shared])),
  // The state of a thing is read from the store, and of a subscription also from the catalogue's limits.
  state: [...shared, 'admin', 'store'],
  watch: [...shared, 'state'],
  console: [...shared, 'places', 'state'],
  summary: [...shared, 'places'],
  // Each kind of sink has its settings in its own file.
  config: [...shared, 'sinks'],
  sandbox: ['filter'],
  cli: [...shared, ...parts, 'places', 'sandbox'],
  'index.ts': [...shared, ...parts],
};

/** Packages that only some folders may import. */
const packageOwners: Record<string, readonly string[]> = {
  'better-sqlite3': ['store'],
  'acme-client': ['tls'],
  '@nats-io/transport-node': ['sinks'],
  '@nats-io/jetstream': ['sinks'],
  mqtt: ['sinks'],
  'prom-client': ['console'],
  'hyparquet-writer': ['cli'],
  pg: ['shared-log', 'sinks'],
};

/** Files that parse the text of an error, and the origin of the text; all others use its data. */
const errorTextReaders: Record<string, string> = {
  'config/geojson-file.ts': "the filter's and JSON's reasons, but for the full stop",
  'config/subscriptions-file.ts': "zod's and the file's own reasons, but for the full stop",
  'domain/notification.ts': "the JSON parser's reason, made printable",
};

/** Libraries that cost tens of milliseconds or megabytes, and may only be loaded on demand. */
const largeLibraries = {
  receiver: [
    ...[
      'acme-client',
      '@peculiar/x509',
      'openid-client',
      'topojson-client',
      'which-polygon',
      'pg',
      'mqtt',
    ],
    'hyparquet-writer',
  ],
  command: [
    ...['acme-client', '@peculiar/x509', 'openid-client', 'prom-client', 'hono', 'pg', 'mqtt'],
    'hyparquet-writer',
  ],
  /** Each thread that reads or writes the log loads its own copy. */
  logThread: ['zod', 'flatbush', 'robust-predicates'],
};

const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file, text: readFileSync(join(source, file), 'utf8') }));

const folderOf = (file: string) => file.split('/')[0] ?? '';

function importsOf({ file, text }: { file: string; text: string }): string[] {
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(
    ([, name]) => name ?? '',
  );
  return specifiers.map((name) =>
    name.startsWith('.') ? relative(source, resolve(source, dirname(file), name)) : name,
  );
}

const graph = new Map(files.map((one) => [one.file, importsOf(one)]));
const edges = [...graph].flatMap(([file, names]) => names.map((name) => ({ file, name })));

describe('the source tree', () => {
  it('has only folders that the design names', () => {
    const folders = new Set(files.map(({ file }) => folderOf(file)));
    expect([...folders].filter((folder) => !(folder in allowed))).toEqual([]);
  });

  it('imports only along the arrows of the design', () => {
    const wrong = edges.filter(({ file, name }) => {
      if (!graph.has(name)) return false;
      const [from, to] = [folderOf(file), folderOf(name)];
      return from !== to && !allowed[from]?.includes(to);
    });
    expect(wrong).toEqual([]);
    expect(edges.filter(({ name }) => graph.has(name)).length).toBeGreaterThan(100);
  });

  it('has no cycles between files', () => {
    const finished = new Set<string>();
    const cycles: string[][] = [];
    const visit = (file: string, path: readonly string[]) => {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file]);
      if (finished.has(file) || path.includes(file)) return;
      for (const name of graph.get(file) ?? []) if (graph.has(name)) visit(name, [...path, file]);
      finished.add(file);
    };
    for (const file of graph.keys()) visit(file, []);
    expect(cycles).toEqual([]);
  });

  it('imports an owned package only in its folder, and in domain only zod', () => {
    const wrong = edges.filter(({ file, name }) => {
      if (graph.has(name)) return false;
      // The domain does no I/O, so it needs no module of Node either.
      if (folderOf(file) === 'domain') return name !== 'zod';
      return packageOwners[name]?.includes(folderOf(file)) === false;
    });
    expect(wrong).toEqual([]);
  });

  it('loads large libraries on demand, not with each command', () => {
    const staticImports = new Map(
      files.map(({ file, text }) => {
        const code = withoutComments(text).replaceAll(/\bimport\('[^']+'\)/g, '');
        const isValue = /(?:^|\n)(?:import|export) (?!type\b)[^;]*?'([^']+)'/g;
        const names = [...code.matchAll(isValue)].map(([, name = '']) =>
          name.startsWith('.') ? relative(source, resolve(source, dirname(file), name)) : name,
        );
        return [file, names];
      }),
    );
    const loads = (file: string, seen = new Set<string>()): Set<string> => {
      for (const name of staticImports.get(file) ?? []) {
        if (seen.has(name)) continue;
        seen.add(name);
        loads(name, seen);
      }
      return seen;
    };
    const commands = files.filter(({ file }) => file.startsWith('cli/commands/'));
    const wrong = [...commands.map(({ file }) => file), 'cli/start/serve.ts'].flatMap((file) => {
      const later =
        file === 'cli/start/serve.ts' ? largeLibraries.receiver : largeLibraries.command;
      const loaded = loads(file);
      return later.filter((name) => loaded.has(name)).map((name) => ({ file, name }));
    });
    expect(wrong).toEqual([]);
    expect(loads('cli/start/serve.ts')).toContain('prom-client');
    for (const file of ['store/log/writer-thread.ts', 'store/query-thread.ts']) {
      const loaded = loads(file);
      expect([file, largeLibraries.logThread.filter((name) => loaded.has(name))]).toEqual([
        file,
        [],
      ]);
    }
  });

  it('reads clock, random numbers, network and process in one file of the command line; the library reads clock and random numbers', () => {
    const clockOrId = /\bDate\.now\(|\bnew Date\(\)|\brandom(UUID|Bytes|Int)\b/;
    const others = /\bMath\.random\(|(?<![\w.])fetch\(|\bprocess\.(?!versions)/;
    const offenders = files.filter(({ file, text }) => {
      // Browser scripts run in another environment, which nothing could pass to them.
      if (file === 'cli/io.ts' || file.startsWith('console/page/browser/')) return false;
      const code = withoutComments(text);
      // The library has no command line above it that could pass them.
      return others.test(code) || (file !== 'index.ts' && clockOrId.test(code));
    });
    expect(offenders.map(({ file }) => file)).toEqual([]);
  });

  it('uses the code and the data of an error, not its text', () => {
    const words = String.raw`\b(?:message|reason|failure|problem|errorText\([^()]*\))`;
    const read = new RegExp(
      String.raw`${words}\??\.(?:match|matchAll|(?:starts|ends)With|includes|replace|replaceAll|split|indexOf|search)\(|\.(?:exec|test)\((?:\w+\.)*${words}`,
    );
    const readers = files.filter(({ text }) => read.test(withoutComments(text)));
    const names = readers.map(({ file }) => file);
    const known = Object.keys(errorTextReaders);
    expect(names.filter((name) => folderOf(name) !== 'sandbox').sort()).toEqual(known.sort());
    expect(read.test("if (error.message.startsWith('Could'))")).toBe(true);
    expect(read.test('const [, code] = /x/.exec(cause.message) ?? [];')).toBe(true);
  });

  it('keeps files short, documents their purpose, and gives none a vague name', () => {
    const lines = ({ text }: { text: string }) => text.split('\n').length;
    expect(files.filter((one) => lines(one) > 400).map(({ file }) => file)).toEqual([]);
    expect(files.filter(({ text }) => !text.startsWith('/**')).map(({ file }) => file)).toEqual([]);
    const vague = /(^|\/)(utils?|helpers?|common|misc)(\.ts$|\/)/;
    expect(files.filter(({ file }) => vague.test(file))).toEqual([]);
  });
});

/** The files of each journey in docs/architecture.md, and the maximum number. */
const journeys = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  .split('## Journeys')[1]
  ?.split(/\n(?=\*\*)/)
  .slice(1)
  .map((text) => ({
    title: /\*\*(.*?):\*\*/.exec(text)?.[1] ?? '',
    path: [...text.matchAll(/^src\/(\S+)/gm)].map(([, file]) => file ?? ''),
  }));
const filesMax: Record<string, number> = {
  'POST to commit': 15,
  'Queue to commit': 5,
  '`query products --bbox`': 18,
  'A page, and its live updates': 10,
  '`register`': 18,
  "An hour's coverage": 13,
  'The page of sinks': 5,
  'An alert': 8,
};

describe('the journeys of docs/architecture.md', () => {
  it('answer the usual questions of newcomers', () => {
    expect(journeys?.map(({ title }) => title)).toEqual(Object.keys(filesMax));
  });

  it.each(journeys ?? [])('$title: few files, each named by an earlier one', ({ title, path }) => {
    expect(path.length).toBeLessThanOrEqual(filesMax[title] ?? 0);
    const named = (file: string, before: readonly string[]) =>
      before.some((one) => {
        const text = files.find(({ file: name }) => name === one)?.text ?? '';
        const threads = [...text.matchAll(/threadFile\('([^']+)'/g)].map(
          ([, name]) => `${name}.ts`,
        );
        // Pages name the scripts of the browser as the browser requests them.
        const script = `'${file.split('/').at(-1)?.replace(/\.ts$/, '.js')}'`;
        const isNamed = threads.some((name) => file.endsWith(name)) || text.includes(script);
        return graph.get(one)?.includes(file) || isNamed;
      });
    expect(path.slice(1).filter((file, i) => !named(file, path.slice(0, i + 1)))).toEqual([]);
    expect(path.filter((file) => !graph.has(file))).toEqual([]);
  });
});

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/\/\/.*$/gm, '');
}
