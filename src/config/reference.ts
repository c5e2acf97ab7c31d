/** Renders the table of variables for people: `.env.example` and `docs/configuration.md`. */
import { type Variable, variables } from './variables.ts';

const rows = () => Object.values<Variable>(variables);

/** The text of `.env.example`: every variable, commented out, with its default or an example. */
export function envExample(): string {
  const blocks = rows().map(({ name, description, default: fallback, example, secret }) => {
    const file = secret === true ? `\n# Or name a file that holds it: ${name}_FILE` : '';
    return `# ${description}${file}\n# ${name}=${fallback ?? example}\n`;
  });
  return `# Copy this file to .env and uncomment what you need. Written by \`npm run generate\`.\n\n${blocks.join('\n')}`;
}

/** The text of `docs/configuration.md`. */
export function configurationPage(): string {
  const lines = rows().map(({ name, description, default: fallback, example, secret }) => {
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
