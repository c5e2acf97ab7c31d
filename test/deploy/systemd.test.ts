/** The unit as shipped, checked by systemd itself, and the command that runs next to the service. */
import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { installed } from '../helpers/thorough.ts';

const deploy = join(import.meta.dirname, '../../deploy/systemd');
const shipped = readFileSync(join(deploy, 'earshot.service'), 'utf8');
const node = '/opt/earshot/node_modules/.bin/node';

/** As stated in `deploy/README.md`; lower is better, 10 is no sandbox. */
const exposureMax = 1.8;

function analyze(unit: string, ...words: string[]) {
  const file = join(temporaryDirectory(), 'earshot.service');
  writeFileSync(file, unit.replace(node, process.execPath));
  return spawnSync('systemd-analyze', [...words, file], { encoding: 'utf8' });
}

describe.runIf(installed('/usr/bin/systemd-analyze'))('the systemd unit', () => {
  it.each([
    ['as shipped', shipped],
    ['with its secrets in files', shipped.replaceAll(/^#(LoadCredential|Environment)/gm, '$1')],
  ])('is accepted by systemd, %s', (_name, unit) => {
    const { status, stderr } = analyze(unit, 'verify');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const broken = analyze(unit.replace('ProtectHome=yes', 'ProtectHouse=yes'), 'verify');
    expect(broken.stderr).toMatch(/Unknown key .*'ProtectHouse'/);
  });

  it(`has an exposure of at most ${exposureMax} of 10`, () => {
    const { stdout } = analyze(shipped, 'security', '--offline=true');
    const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1]);
    expect(exposure).toBeGreaterThan(0);
    expect(exposure).toBeLessThanOrEqual(exposureMax);
    expect(readFileSync(join(deploy, '../README.md'), 'utf8')).toContain(`${exposureMax} of 10`);
  });

  it('gives the program time to finish requests in flight', () => {
    const serve = readFileSync(join(import.meta.dirname, '../../src/receiver/serve.ts'), 'utf8');
    const graceMs = Number(/graceMs = ([\d_]+);/.exec(serve)?.[1]?.replace('_', ''));
    const stopSeconds = Number(/^TimeoutStopSec=(\d+)s$/m.exec(shipped)?.[1]);
    expect(stopSeconds * 1000).toBeGreaterThanOrEqual(graceMs + 15_000);
  });
});

describe('the command next to the service', () => {
  /** Runs the script with a `systemctl` that prints a unit and a `systemd-run` that prints its arguments. */
  function run(unit: string, ...words: string[]) {
    const folder = temporaryDirectory();
    const fake = (name: string, script: string) => {
      writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
      chmodSync(join(folder, name), 0o755);
    };
    writeFileSync(join(folder, 'unit'), unit);
    fake('id', 'echo 0');
    fake('systemctl', `[ "$*" = 'cat earshot.service' ] && cat '${join(folder, 'unit')}'`);
    fake('systemd-run', `for word in "$@"; do printf '%s\\n' "$word"; done; exit 3`);
    const env = { PATH: `${folder}:${process.env.PATH}` };
    const ended = spawnSync('sh', [join(deploy, 'earshot'), ...words], { env, encoding: 'utf8' });
    return { ...ended, lines: ended.stdout.trimEnd().split('\n') };
  }

  it('runs as the same user, with the same settings, in the same sandbox', () => {
    const { status, stderr, lines } = run(shipped, 'query', '--name', 'S2A_* x', '', '$HOME');
    expect({ status, stderr }).toEqual({ status: 3, stderr: '' });
    const program = [node, '--max-semi-space-size=4', '/opt/earshot/scripts/earshot.js'];
    const words = lines.slice(lines.indexOf('--') + 1);
    expect(words).toEqual([...program, 'query', '--name', 'S2A_* x', '', '$HOME']);
    const properties = lines.filter((line) => line.startsWith('--property='));
    for (const property of [
      'DynamicUser=yes',
      'User=earshot',
      'StateDirectory=earshot earshot-backups',
      'WorkingDirectory=/etc/earshot',
      'EnvironmentFile=-/etc/earshot/earshot.env',
      'Environment=EARSHOT_DATA_DIR=/var/lib/earshot',
      'UMask=0077',
      'ProtectSystem=strict',
    ]) {
      expect(properties).toContain(`--property=${property}`);
    }
    const others =
      /=(Type|NotifyAccess|Exec|Watchdog|Restart(Sec)?|Timeout|Kill|Wants|After|Desc)\w*=/;
    expect(properties.filter((property) => others.test(property))).toEqual([]);
  });

  it("includes the administrator's own lines, in their order, and secrets from its own copies", () => {
    const own = `
# /etc/systemd/system/earshot.service.d/override.conf
[Service]
ExecStart=
ExecStart=/usr/bin/node /srv/earshot.js start
LoadCredential=password:/etc/earshot/password
Environment=EARSHOT_ENDPOINT_PASSWORD_FILE=/run/credentials/earshot.service/password
Environment=EARSHOT_DATA_DIR=/srv/data`;
    const { lines } = run(`${shipped}${own}`, 'doctor');
    expect(lines.slice(-3)).toEqual(['/usr/bin/node', '/srv/earshot.js', 'doctor']);
    expect(lines).toContain('--property=LoadCredential=password:/etc/earshot/password');
    const name = lines.find((line) => line.startsWith('--unit='))?.slice('--unit='.length);
    const environment = lines.filter((line) => line.startsWith('--property=Environment='));
    expect(environment.map((line) => line.slice('--property=Environment='.length))).toEqual([
      'EARSHOT_DATA_DIR=/var/lib/earshot',
      `EARSHOT_ENDPOINT_PASSWORD_FILE=/run/credentials/${name}.service/password`,
      'EARSHOT_DATA_DIR=/srv/data',
    ]);
  });
});
