/** Terminal output: colour unless NO_COLOR is set, short log lines, text wrapped between words. */
import { describe, expect, it } from 'vitest';
import { captureConsole, createLogger } from '../../../src/core/cli/logger.ts';
import { wrapText } from '../../../src/core/cli/output.ts';
import { runCommand } from '../../helpers/fake-io.ts';

const argv = ['sandbox', '--trust', '/nonexistent/ca.pem'];

/** A log, and its output so far. */
function openLog(isTTY: boolean, env: Record<string, string>) {
  let text = '';
  const write = (chunk: string | Uint8Array) => {
    text += String(chunk);
    return true;
  };
  const log = createLogger({ env, stderr: { isTTY, write, once: () => undefined } }, 'info');
  return { log, text: () => text };
}

/** Returns the log output of one warning. */
function logged(isTTY: boolean, env: Record<string, string>): string {
  const { log, text } = openLog(isTTY, env);
  log.debug('not logged');
  log.warn({ name: 'a\u001b[2Jb', count: 2, err: new Error('why\u0007') }, 'look here');
  return text();
}

it.each([
  ['a terminal', { isTTY: true }, true],
  ['a pipe', { isTTY: false }, false],
  ['a terminal under NO_COLOR', { isTTY: true, env: { NO_COLOR: '1' } }, false],
  ['a terminal without colours', { isTTY: true, env: { TERM: 'dumb' } }, false],
])(
  'colour on %s',
  async (_title, { isTTY, env = {} }: { isTTY: boolean; env?: object }, coloured) => {
    const { err } = await runCommand(argv, { isTTY, env: { ...env } });
    expect(err).toContain('Trusting /nonexistent/ca.pem');
    expect(err.includes('\u001b[')).toBe(coloured);
  },
);

describe('the log', () => {
  it('is short lines without control characters on a terminal', () => {
    const text = logged(true, { NO_COLOR: '1' });
    expect(text).toMatch(
      /^\d\d:\d\d:\d\d warn {2}look here {2}name=a\\u001b\[2Jb count=2\n +why\\u0007\n$/,
    );
    expect(logged(true, {})).toContain('\u001b[');
  });

  it('has what libraries write with console, without control characters', () => {
    const { log, text } = openLog(true, { NO_COLOR: '1' });
    const { console: target } = globalThis;
    const { log: own } = target;
    const release = captureConsole((output) => log.warn({ text: output }, 'message of a library'));
    for (const name of ['log', 'error', 'info', 'trace', 'warn', 'debug'] as const) {
      target[name]('reader closed', new Error(`\u001b[31m\u202e${name}`));
    }
    release();
    expect(
      text().match(/message of a library {2}text=reader closed Error: \\u001b\[31m\\u202e\w+/g),
    ).toHaveLength(6);
    expect(text().replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(target.log).toBe(own);
  });

  it('is JSON lines otherwise', () => {
    const text = logged(false, {});
    expect(text.split('\n')).toHaveLength(2);
    expect(JSON.parse(text)).toMatchObject({
      level: 'warn',
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      msg: 'look here',
      count: 2,
      err: { message: 'why\u0007', stack: expect.any(String) },
    });
  });
});

const text = `This product of Sentinel-2A holds ${'x'.repeat(50)} over parts of Italy and Slovenia.`;

it('a text on a terminal is wrapped between words, with its indent, and no line is longer than the terminal', () => {
  expect(wrapText(text, '  ', { isTTY: true, columns: 40 })).toEqual([
    '  This product of Sentinel-2A holds',
    `  ${'x'.repeat(50)}`,
    '  over parts of Italy and Slovenia.',
  ]);
  const words = Array.from({ length: 100 }, (_, i) => 'w'.repeat(1 + (i % 9)));
  const lines = wrapText(words.join(' '), '    ', { isTTY: true, columns: 37 });
  expect(lines.flatMap((line) => line.trim().split(' '))).toEqual(words);
  expect(Math.max(...lines.map((line) => line.length))).toBe(37);
});
