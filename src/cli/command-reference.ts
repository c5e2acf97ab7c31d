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

In a checkout, \`earshot X\` is \`npm run earshot -- X\` (with \`npm run -s\` nothing but the command's
own output is printed).

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
