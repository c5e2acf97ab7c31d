/** Renders the command line for people: `docs/cli.md`. */
import type { Command } from 'commander';
import { fullName, withChildren } from './program.ts';

/** The text of `docs/cli.md`: what each command's `--help` prints. */
export function commandLinePage(program: Command): string {
  const sections = withChildren(program).map((command) => {
    const level = command.parent === null ? '##' : command.parent.parent === null ? '##' : '###';
    return `${level} ${fullName(command)}\n\n\`\`\`text\n${helpText(command)}\n\`\`\`\n`;
  });
  return `# Command line

<!-- Written by \`npm run generate\` from the commands' own help texts. -->

## How to call it

These pages write \`earshot X\`; messages write the form in which you called the program.

| where | form | time to start |
|---|---|---|
| anywhere, once it is on the path (below) | \`earshot X\` | 1 |
| in a checkout, by its path | \`bin/earshot X\` | 1 |
| in a checkout, by npm | \`npm run -s earshot -- X\` (\`-s\`: no lines of npm's own) | 1.4 times |
| in a folder where [the package](package.md) is installed | \`npx --no -- earshot X\` | 2.4 times |

**On the path.** In a checkout, once: \`ln -s "$PWD/bin/earshot" ~/.local/bin/earshot\` (or any folder
of your \`PATH\`). It works from any folder and uses the Node that \`npm ci\` has installed. \`npm link\`
does the same where the machine's own Node is new enough. With the package:
\`PATH="$PWD/node_modules/.bin:$PATH"\`. The program reads \`.env\`, \`earshot.config.ts\` and \`./data\` of
the folder in which you call it; \`--data-dir\` names another data directory.

**Not a package of the registry.** earshot is not published there. Where it is not installed,
\`npx\` without \`--no\` would download and run whatever has that name; \`npx --no\` fails instead. The
\`--\` keeps npx from taking \`--help\` for itself.

**Completion.** \`earshot completion bash\` (or \`zsh\`, \`fish\`) prints a script; its help says where to
put it.

**The same flags everywhere.** \`--since\` and \`--until\` choose a span of time, \`-o, --output\` the
form of the output with \`--json\` as short form, \`-n, --limit\` the maximum number of rows,
\`--data-dir\` the data directory; \`--yes\` answers the question. \`earshot config\` prints the settings
that apply, and where each comes from.

${sections.join('\n')}`;
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
