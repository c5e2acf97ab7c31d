/** Files generated from the program's own tables: path in the project -> text. */
import type { Command, Option } from 'commander';
import { app } from '../src/app.ts';
import type { Io, Output } from '../src/core/cli/io.ts';
import { asCalled } from '../src/core/cli/output.ts';
import {
  commandsByGroup,
  createProgram,
  exitCodeOf,
  fullName,
  withChildren,
} from '../src/core/cli/run.ts';
import { loadSettings } from '../src/core/config/config.ts';
import type { MetricRow } from '../src/core/status/gauge.ts';
import { loadStatusParts, type StatusPart } from '../src/core/status/status.ts';
import { errorMeanings } from '../src/core/terms/app-error.ts';
import { allFaults } from '../src/core/terms/faults.ts';
import { metricGroups } from '../src/features/metrics/metric-table.ts';

export async function generatedFiles(): Promise<Record<string, string>> {
  const files = {
    '.env.example': envExample(),
    'docs/reference/configuration.md': configurationPage(),
    'docs/reference/cli.md': commandLinePage(await createProgram(idleIo, '')),
    'docs/reference/metrics.md': metricsPage(await loadStatusParts(app)),
    'docs/errors.md': errorsPage(),
  };
  const checkout = { env: { earshot_called_as: './earshot' } };
  return Object.fromEntries(
    Object.entries(files).map(([path, text]) => [path, asCalled(text, checkout)]),
  );
}

const settings = await loadSettings(app);

const nowhere: Output = { write: () => true, once: () => undefined };

/** Io for commands that are only described, never run. */
export const idleIo: Io = {
  stdout: nowhere,
  stderr: nowhere,
  env: {},
  readFile: () => '',
  nowUs: () => 0,
  newId: () => '',
  newSecret: () => '',
  random: () => 0,
  fetch: () => Promise.reject(new Error('fetch is not available')),
  pid: 0,
  workingDir: '',
  features: app,
  settings,
  ask: async () => null,
  signal: new AbortController().signal,
  exit: () => undefined,
};

/** Returns the text of `.env.example`: every variable, commented out, with its default or an example. */
function envExample(): string {
  const blocks = Object.entries(settings.variables).map(
    ([name, { description, default: fallback, example, secret }]) => {
      const file =
        secret === true
          ? `\n# Or store the value in a file, and set ${name}_FILE to the path of the file.`
          : '';
      return `# ${description}${file}\n# ${name}=${fallback ?? example}\n`;
    },
  );
  return `# Copy this file to .env and uncomment what you need. Written by \`npm run generate\`.\n\n${blocks.join('\n')}`;
}

/** The text of `docs/reference/configuration.md`. */
function configurationPage(): string {
  const lines = Object.entries(settings.variables).map(
    ([name, { description, default: fallback, example, secret }]) => {
      const names = secret === true ? `\`${name}\`<br>\`${name}_FILE\`` : `\`${name}\``;
      return `| ${names} | ${description} | ${fallback === undefined ? '' : `\`${fallback}\``} | \`${example}\` |`;
    },
  );
  return `# Configuration

<!-- Written by \`npm run generate\` from the settings of the features. -->

All settings are environment variables. Variables can also be in the file \`.env\` in the working directory.
The environment has priority over \`.env\`. An empty value counts as unset. Each command reads only the variables that it
needs, and reports all problems at once. \`earshot admin config\` prints the effective values and their sources.
A variable \`EARSHOT_…\` that is not in this table is an error.

A secret can be stored in a file: set \`EARSHOT_…_FILE\` to the path of the file. A line break at the end of the
file is ignored.

| variable | meaning | default | example |
|---|---|---|---|
${lines.join('\n')}
`;
}

/** The text of `docs/reference/cli.md`: what each command's `--help` prints. */
function commandLinePage(program: Command): string {
  const sections = withChildren(program).map((command) => {
    const level = command.parent?.parent ? '###' : '##';
    return `${level} ${fullName(command)}\n\n\`\`\`text\n${helpText(command)}\n\`\`\`\n`;
  });
  return `# Command line

<!-- Written by \`npm run generate\` from the commands' own help texts. -->

In a checkout, call \`./earshot X\`; with an installed package, \`earshot X\`
([more](../start.md#calling-earshot)).

## Commands

| group | command | what it does |
|---|---|---|
${groupRows(program).join('\n')}

## Flags

The same flag has the same meaning in every command. See the help of each command for details.

| flag | meaning | commands |
|---|---|---|
${flagRows(program).join('\n')}

${sections.join('\n')}`;
}

/** The text of `docs/errors.md`: each code of a fault or an error, with its explanation. */
function errorsPage(): string {
  const faults = allFaults.map(({ code, clause, nextStep, explanation }) => {
    const more = explanation === '' ? '' : `\n\n${explanation}`;
    return `### ${code}\n\n${clause.charAt(0).toUpperCase()}${clause.slice(1)}. **Next step:** ${nextStep}${more}\n`;
  });
  const errors = Object.entries(errorMeanings).map(
    ([code, meaning]) =>
      `### ${code}\n\n${meaning} Exit code: ${exitCodeOf(code as keyof typeof errorMeanings)}.\n`,
  );
  return `# Errors

<!-- Written by \`npm run generate\` from src/core/terms/faults.ts and src/core/terms/app-error.ts. -->

A message states what failed, and the next step. If there is more to know, the message ends with a link to a heading of
this page. \`earshot doctor\` finds most causes.

## Faults

Causes outside of earshot: the network, certificates, logins, files and databases. Messages show the code of the
system in brackets, such as \`ECONNREFUSED\`. In the sentences, "it" is the service or the file of the message.

${faults.join('\n')}
## Errors

The kinds of errors of commands, of the HTTP interfaces and of the library (\`code\`). Exit codes of all commands: 0 done,
1 failed, 2 wrong usage or configuration, 3 differences found. \`earshot doctor\` exits with 2 if only settings are wrong.

${errors.join('\n')}`;
}

/** The text of `docs/reference/metrics.md`. */
function metricsPage(parts: readonly StatusPart[]): string {
  const sections = metricGroups(parts).map(({ title, rows }) => `## ${title}\n\n${tableOf(rows)}`);
  return `# Metrics

<!-- Written by \`npm run generate\` from the parts of the status, and src/features/metrics. -->

Metrics of \`/metrics\` on the private listener, in the Prometheus text format. [monitoring.md](../monitoring.md) explains how to
collect them, the dashboard and the alert rules.

A metric without a known value is absent. Counters and histograms start at 0 at each start of the receiver.

${sections.join('\n\n')}

## Process

The metrics \`process_…\` and \`nodejs_…\` are the default ones of prom-client: processor time, memory, open files, delay of the
event loop, heap and garbage collection, measured from the first scrape on.
`;
}

function tableOf(rows: readonly MetricRow[]): string {
  const lines = rows.map(({ name, type, unit, meaning, labels }) => {
    const named = Object.entries(labels).map(([label, values]) => `\`${label}\`: ${values}`);
    return `| \`${name}\` | ${type} | ${unit} | ${[meaning, ...named].join('<br>')} |`;
  });
  return `| metric | type | unit | meaning |\n|---|---|---|---|\n${lines.join('\n')}`;
}

function groupRows(program: Command): string[] {
  return [...commandsByGroup(app)].flatMap(([group, names]) =>
    names.map((name, index) => {
      const description = program.commands.find((one) => one.name() === name)?.description();
      return `| ${index === 0 ? group : ''} | [\`${name}\`](#earshot-${name}) | ${description} |`;
    }),
  );
}

/** Returns the meaning of a flag: its description up to the first bracket. It is the same in every command. */
export function meaningOf({ description }: Option): string {
  return description.split(' (')[0] ?? '';
}

/** Returns the visible flags of all commands, by name, each with the commands that have it. */
function flagRows(program: Command): string[] {
  const rows = new Map<string, { flags: string; meaning: string; commands: string[] }>();
  for (const command of withChildren(program).slice(1)) {
    for (const option of command.options) {
      const { flags } = option;
      const row = rows.get(option.name()) ?? { flags, meaning: meaningOf(option), commands: [] };
      row.commands.push(fullName(command).replace('earshot ', ''));
      rows.set(option.name(), row);
    }
  }
  const most = withChildren(program).length / 2;
  return [...rows].toSorted().map(([, { flags, meaning, commands }]) => {
    const users = commands.length > most ? 'most' : commands.join(', ');
    return `| \`${flags.replace('|', '\\|')}\` | ${meaning} | ${users} |`;
  });
}

function helpText(command: Command): string {
  let text = '';
  command.configureOutput({
    writeOut: (chunk) => {
      text += chunk;
    },
    getOutHelpWidth: () => 100,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return text.trim();
}
