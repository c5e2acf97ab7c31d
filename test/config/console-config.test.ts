import { describe, expect, it } from 'vitest';
import { configWith, problemsWith } from './environment.ts';

const password = 'a word of mine';

describe('the private listener', () => {
  it('is on loopback unless told otherwise, and can be turned off', () => {
    expect(configWith({}).console?.listen).toEqual({ host: '127.0.0.1', port: 8080 });
    expect(configWith({ EARSHOT_CONSOLE_LISTEN: 'off' }).console).toBeNull();
  });

  it.each(['127.0.0.1:1', '127.8.9.1:1', '[::1]:1', 'localhost:1'])(
    'needs no password on %s',
    (listen) => {
      const config = configWith({ EARSHOT_CONSOLE_LISTEN: listen });
      expect(config.console?.password).toBeUndefined();
    },
  );

  it.each([
    ...['0.0.0.0:8080', '[::]:8080', '192.168.1.2:8080', 'earshot.example.org:8080', '1.2:1'],
    // All of this machine's addresses, and names of loopback that other systems read otherwise.
    ...['0:8080', '00.0.0.0:1', '[::ffff:0:0]:1', '[0:0:0:0:0:0:0:0]:1', '[::2]:1', '[fe80::1]:1'],
    ...['127.1:1', '0x7f000001:1', '2130706433:1', '0177.0.0.1:1', 'localhost.example.org:1'],
  ])('needs a password on %s', (listen) => {
    const env = { EARSHOT_CONSOLE_LISTEN: listen };
    expect(problemsWith(env)).toEqual([
      `EARSHOT_CONSOLE_LISTEN: ${listen} can be reached from other machines. Set EARSHOT_CONSOLE_PASSWORD too, or use 127.0.0.1:${listen.split(':').at(-1)}.`,
    ]);
    const config = configWith({ ...env, EARSHOT_CONSOLE_PASSWORD: password });
    expect(config.console?.password).toBe(password);
  });

  it('takes its password from a file, and tells one thing of a file that is not there', () => {
    const env = { EARSHOT_CONSOLE_LISTEN: '0.0.0.0:8080', EARSHOT_CONSOLE_PASSWORD_FILE: 'word' };
    expect(configWith(env, { word: `${password}\n` }).console?.password).toBe(password);
    expect(problemsWith(env)).toEqual([
      'The file that EARSHOT_CONSOLE_PASSWORD_FILE names cannot be read (ENOENT).',
    ]);
  });

  it('reports what is wrong with it together with all else', () => {
    const problems = problemsWith({ EARSHOT_CONSOLE_LISTEN: '0.0.0.0:8080', EARSHOT_LISTEN: 'x' });
    expect(problems.map((problem) => problem.split(':')[0])).toEqual([
      'EARSHOT_LISTEN',
      'EARSHOT_CONSOLE_LISTEN',
    ]);
  });
});
