/** Stops on a Node that is too old, before any code loads that it cannot run. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `earshot needs Node 22.19 or newer and this is ${process.versions.node}: run it through npm (for example \`npm run earshot -- --help\`), which uses the Node 24 that \`npm ci\` has brought along.\n`,
  );
  process.exit(2);
}
