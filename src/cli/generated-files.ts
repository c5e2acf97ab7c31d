/** The pages that are written from the program's own tables: path in the project -> text. */
import { variableRows } from '../config/variables.ts';
import { metricsPage } from '../console/metrics/metric-table.ts';
import { commandLinePage } from './command-reference.ts';
import type { Io, Output } from './io.ts';
import { createProgram } from './program.ts';

export async function generatedFiles(): Promise<Record<string, string>> {
  return {
    '.env.example': envExample(),
    'docs/configuration.md': configurationPage(),
    'docs/cli.md': commandLinePage(await createProgram(idleIo, '')),
    'docs/metrics.md': metricsPage(),
  };
}

const nowhere: Output = { write: () => true, once: () => undefined };

/** Enough of a world for commands that are described and never run. */
export const idleIo: Io = {
  stdout: nowhere,
  stderr: nowhere,
  env: {},
  readFile: () => '',
  nowUs: () => 0,
  newId: () => '',
  newSecret: () => '',
  random: () => 0,
  fetch: () => Promise.reject(new Error('nothing is asked for')),
  localAddresses: () => [],
  pid: 0,
  workingDir: '',
  ask: async () => null,
  signal: new AbortController().signal,
  exit: () => undefined,
};

/** The text of `.env.example`: every variable, commented out, with its default or an example. */
function envExample(): string {
  const blocks = variableRows.map(([name, { description, default: fallback, example, secret }]) => {
    const file = secret === true ? `\n# Or name a file that holds it: ${name}_FILE` : '';
    return `# ${description}${file}\n# ${name}=${fallback ?? example}\n`;
  });
  return `# Copy this file to .env and uncomment what you need. Written by \`npm run generate\`.\n\n${blocks.join('\n')}`;
}

/** The text of `docs/configuration.md`. */
function configurationPage(): string {
  const lines = variableRows.map(([name, { description, default: fallback, example, secret }]) => {
    const names = secret === true ? `\`${name}\`<br>\`${name}_FILE\`` : `\`${name}\``;
    return `| ${names} | ${description} | ${fallback === undefined ? '' : `\`${fallback}\``} | \`${example}\` |`;
  });
  return `# Configuration

<!-- Written by \`npm run generate\` from src/config/variables.ts. -->

All settings are environment variables; a file \`.env\` in the working directory is read too, and the
environment wins. An empty value counts as unset. Each command reads only the variables it needs, and
reports all problems at once. \`earshot config\` prints the values that apply and where each comes from. A name beginning with \`EARSHOT_\` that is not in this table is an error.

A secret may be given as a file: \`EARSHOT_…_FILE\` names it, and a line break at its end is dropped.

| variable | meaning | default | example |
|---|---|---|---|
${lines.join('\n')}
`;
}
