import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { app } from '../src/app.ts';
import type { Feature } from '../src/core/feature.ts';

const root = resolve(import.meta.dirname, '..');
const source = join(root, 'src');

/** Parts that a part may import, in addition to itself. A feature also imports those that it needs. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  core: ['filter', 'store', 'admin'],
  filter: ['core'],
  store: ['core', 'filter'],
  receiver: ['core', 'filter', 'store', 'admin'],
  admin: ['core', 'filter', 'store', 'receiver'],
  sandbox: ['filter'],
  'features/demo': ['sandbox'],
  'app.ts': ['core', 'store', 'receiver', 'admin'],
  'index.ts': ['core', 'filter', 'store', 'receiver', 'admin', 'app.ts'],
};

/** The list of features, and the library, whose types name some. */
const lists = ['app.ts', 'index.ts'];

/** The contract of features names the slots of all parts. */
const contract = 'core/feature.ts';

/** Packages that only some folders may import. */
const packageOwners: Record<string, readonly string[]> = {
  'better-sqlite3': ['store'],
  'acme-client': ['features/certificate'],
  '@nats-io/transport-node': ['features/sinks'],
  '@nats-io/jetstream': ['features/sinks'],
  mqtt: ['features/sinks'],
  'prom-client': ['features/metrics'],
  'hyparquet-writer': ['features/products'],
  pg: ['features/shared-log', 'features/sinks'],
};

/** Files that parse the text of an error, and the origin of the text; all others use its data. */
const errorTextReaders: Record<string, string> = {
  'filter/builder.ts': "the filter's and JSON's reasons, but for the full stop",
  'core/config/subscriptions-file.ts': "zod's and the file's own reasons, but for the full stop",
  'core/terms/notification.ts': "the JSON parser's reason, made printable",
};

/** Libraries that cost tens of milliseconds or megabytes, and may only be loaded on demand. */
const largeLibraries = {
  receiver: [
    ...['acme-client', '@peculiar/x509', 'topojson-client', 'which-polygon', 'pg', 'mqtt'],
    'hyparquet-writer',
  ],
  command: [
    ...['acme-client', '@peculiar/x509', 'prom-client', 'hono', 'pg', 'mqtt'],
    'hyparquet-writer',
  ],
  /** Each thread that reads or writes the log loads its own copy. */
  logThread: ['zod', 'flatbush', 'robust-predicates'],
};

const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file, text: readFileSync(join(source, file), 'utf8') }));

/** Parts that cannot be removed. */
const parts = ['core', 'store', 'receiver', 'admin'];

const featureOf = (part: string): Feature | undefined =>
  app.find(({ name }) => part === `features/${name}`);

/** Returns the part of a file: a folder of `src`, or a feature. */
const partOf = (file: string) => file.split('/', file.startsWith('features/') ? 2 : 1).join('/');

function importsOf({ file, text }: { file: string; text: string }): string[] {
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(
    ([, name]) => name ?? '',
  );
  return specifiers.map((name) =>
    name.startsWith('.') ? relative(source, resolve(source, dirname(file), name)) : name,
  );
}

const graph = new Map(files.map((one) => [one.file, importsOf(one)]));
/** Without imports of types, which do nothing at run time. */
const runtime = new Map(
  files.map((one) => {
    const text = one.text.replaceAll(/^(?:import|export) type [^;]*;$/gm, '');
    return [one.file, importsOf({ ...one, text })];
  }),
);
const edges = [...graph].flatMap(([file, names]) => names.map((name) => ({ file, name })));

describe('the source tree', () => {
  it('imports only along the arrows of the design', () => {
    const isAllowed = (file: string, from: string, to: string) => {
      if (from === to || (lists.includes(from) && to.startsWith('features/'))) return true;
      if (file === contract) return !to.startsWith('features/');
      if (!from.startsWith('features/')) return allowed[from]?.includes(to) === true;
      const needs = featureOf(from)?.needs ?? [];
      return (
        ['core', 'filter', 'store', 'receiver', 'admin'].includes(to) ||
        needs.some((name) => to === `features/${name}`) ||
        allowed[from]?.includes(to) === true
      );
    };
    const wrong = edges.flatMap(({ file, name }) => {
      if (!graph.has(name)) return [];
      const [from, to] = [partOf(file), partOf(name)];
      return isAllowed(file, from, to) ? [] : [`${from} -> ${to}`];
    });
    expect([...new Set(wrong)]).toEqual([]);
  });

  it('lists exactly the folders of the features, whose needs exist and have no cycle', () => {
    const folders = readdirSync(join(source, 'features'));
    const listed = app.map(({ name }) => name).filter((name) => !parts.includes(name));
    expect(listed.toSorted()).toEqual(folders.toSorted());
    const chain = (name: string, path: readonly string[]): readonly string[] =>
      path.includes(name)
        ? [...path, name]
        : (featureOf(`features/${name}`)?.needs?.flatMap((one) => chain(one, [...path, name])) ??
          []);
    expect(folders.flatMap((name) => chain(name, []))).toEqual([]);
    const needed = folders.flatMap((name) => featureOf(`features/${name}`)?.needs ?? []);
    expect(needed.filter((name) => !folders.includes(name))).toEqual([]);
  });

  it('imports of another feature only its index and the files that it offers', () => {
    const crossing = edges.filter(
      ({ file, name }) =>
        graph.has(name) &&
        partOf(name).startsWith('features/') &&
        !lists.includes(file) &&
        partOf(file) !== partOf(name),
    );
    const offered = app.flatMap((feature: Feature) =>
      ['index.ts', ...(feature.offers ?? [])].map((file) => `features/${feature.name}/${file}`),
    );
    expect(crossing.filter(({ name }) => !offered.includes(name))).toEqual([]);
  });

  it('has no cycles between files at run time', () => {
    const finished = new Set<string>();
    const cycles: string[][] = [];
    const visit = (file: string, path: readonly string[]) => {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file]);
      if (finished.has(file) || path.includes(file)) return;
      for (const name of runtime.get(file) ?? []) if (graph.has(name)) visit(name, [...path, file]);
      finished.add(file);
    };
    for (const file of graph.keys()) visit(file, []);
    expect(cycles).toEqual([]);
  });

  it('imports an owned package only in its folder', () => {
    const wrong = edges.filter(({ file, name }) => {
      if (graph.has(name)) return false;
      return packageOwners[name]?.includes(partOf(file)) === false;
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
    const commands = files.filter(({ file }) => /(^|\/|-)commands?(\/[a-z-]+)?\.ts$/.test(file));
    const wrong = [...commands.map(({ file }) => file), 'receiver/serve.ts'].flatMap((file) => {
      const later = file === 'receiver/serve.ts' ? largeLibraries.receiver : largeLibraries.command;
      const loaded = loads(file);
      return later.filter((name) => loaded.has(name)).map((name) => ({ file, name }));
    });
    expect(wrong).toEqual([]);
    expect(loads('receiver/app.ts')).toContain('hono');
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
      if (file === 'core/cli/io.ts' || file.includes('/browser/')) return false;
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
    expect(names.filter((name) => partOf(name) !== 'sandbox').sort()).toEqual(known.sort());
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

/** The files of each walk in docs/architecture.md, and the maximum number. */
const walks = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  .split('## Walks')[1]
  ?.split(/\n(?=\*\*)/)
  .slice(1)
  .map((text) => ({
    title: /\*\*(.*?):\*\*/.exec(text)?.[1] ?? '',
    path: [...text.matchAll(/^src\/(\S+)/gm)].map(([, file]) => file ?? ''),
  }));
/** A walk of a feature that was removed is not checked. */
const present = walks?.filter(({ path: [first = ''] }) =>
  first.startsWith('features/') ? featureOf(partOf(first)) !== undefined : true,
);
const filesMax: Record<string, number> = {
  'POST to commit': 10,
  "An hour's coverage": 7,
  'A new kind of sink': 2,
};

describe('the walks of docs/architecture.md', () => {
  it('answer the usual questions of newcomers', () => {
    expect(walks?.map(({ title }) => title)).toEqual(Object.keys(filesMax));
  });

  it.each(present ?? [])('$title: few files, each named by an earlier one', ({ title, path }) => {
    expect(path.length).toBeLessThanOrEqual(filesMax[title] ?? 0);
    const named = (file: string, before: readonly string[]) =>
      before.some((one) => {
        const text = files.find(({ file: name }) => name === one)?.text ?? '';
        const modules = [...text.matchAll(/moduleFile\('\.\/([^']+)'/g)].map(([, name]) =>
          join(dirname(one), `${name}.ts`),
        );
        return graph.get(one)?.includes(file) || modules.includes(file);
      });
    expect(path.slice(1).filter((file, i) => !named(file, path.slice(0, i + 1)))).toEqual([]);
    expect(path.filter((file) => !graph.has(file))).toEqual([]);
  });
});

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/\/\/.*$/gm, '');
}
