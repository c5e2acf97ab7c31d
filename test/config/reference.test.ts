/** The written reference names every variable, and its examples work. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readServeConfig } from '../../src/config/read-config.ts';
import { configurationPage, envExample } from '../../src/config/reference.ts';
import { type Variable, variables } from '../../src/config/variables.ts';
import { environment } from './environment.ts';

const rows = Object.values<Variable>(variables);
const names = rows.flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name]));
const project = new URL('../../', import.meta.url);
const fileText = (path: string) => readFileSync(new URL(path, project), 'utf8');

describe('the reference', () => {
  it.each(['.env.example', 'docs/configuration.md'])('%s names every variable', (path) => {
    const text = fileText(path);
    for (const name of names) expect(text).toMatch(new RegExp(`\\b${name}\\b`));
  });

  it('names every default and no variable that is none', () => {
    const page = configurationPage();
    for (const row of rows) expect(page).toContain(row.default ?? row.example);
    for (const text of [page, envExample()]) {
      const mentioned = text.match(/EARSHOT_[A-Z_]*[A-Z]/g) ?? [];
      expect(mentioned.filter((name) => !names.includes(name))).toEqual([]);
    }
  });

  it('gives an example file that is a whole configuration once its lines are uncommented', () => {
    const lines = envExample().match(/(?<=^# )EARSHOT_[A-Z_]+=.*$/gm) ?? [];
    expect(lines).toHaveLength(rows.length);
    const env = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
    expect(readServeConfig(environment(env))).toMatchObject({ logLevel: 'info' });
  });

  it.each(rows)('gives an example of $name that is accepted', ({ schema, example }) => {
    expect(schema.safeParse(example).success).toBe(true);
  });
});
