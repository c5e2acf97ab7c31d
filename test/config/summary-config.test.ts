/** What is told in words, by which model and at what cost: read, and refused where it does not fit. */
import { describe, expect, it } from 'vitest';
import { readAll, readServeConfig } from '../../src/config/read-config.ts';
import { readSummaryConfig } from '../../src/config/summary-config.ts';
import { enough, environment, refusalOf, wholeTextOf } from './environment.ts';

const EARSHOT_INFERENCE_API_KEY = 'sk-hunter2-not-to-be-told';
const EARSHOT_INFERENCE_MODEL = 'openai/gpt-oss-120b';
const both = { EARSHOT_INFERENCE_API_KEY, EARSHOT_INFERENCE_MODEL };

type Variables = Record<string, string | undefined>;

const read = (env: Variables, files = {}) => readSummaryConfig(environment(env, files));
const problemsWith = (env: Variables, files = {}) => refusalOf(() => read(env, files)).details;

describe('the configuration of summaries', () => {
  it('is off by default, without a model, and with a budget', () => {
    expect(read({})).toEqual({
      rule: 'off',
      inference: null,
      budget: { requestsPerHour: 60, requestsPerDay: 500, tokensPerDay: 500_000 },
    });
  });

  it('has a model where there are a key and a model, whatever the rule', () => {
    const inference = {
      url: 'https://api-sherlock.cloudferro.com',
      apiKey: EARSHOT_INFERENCE_API_KEY,
      model: EARSHOT_INFERENCE_MODEL,
    };
    expect(read(both)).toMatchObject({ rule: 'off', inference });
    expect(read({ ...both, EARSHOT_SUMMARY: 'each' })).toMatchObject({ rule: 'each', inference });
  });

  it('takes the key from a file', () => {
    const env = { EARSHOT_INFERENCE_API_KEY_FILE: '/run/key', EARSHOT_INFERENCE_MODEL };
    const { inference } = read(env, { '/run/key': `${EARSHOT_INFERENCE_API_KEY}\n` });
    expect(inference?.apiKey).toBe(EARSHOT_INFERENCE_API_KEY);
  });

  it('can have a rule without a model: texts are made from the facts', () => {
    expect(read({ EARSHOT_SUMMARY: 'digest' })).toMatchObject({ rule: 'digest', inference: null });
  });

  it('takes another budget, and none', () => {
    const env = {
      EARSHOT_SUMMARY_REQUESTS_PER_HOUR: '0',
      EARSHOT_SUMMARY_REQUESTS_PER_DAY: '7',
      EARSHOT_SUMMARY_TOKENS_PER_DAY: '1000000',
    };
    const budget = { requestsPerHour: 0, requestsPerDay: 7, tokensPerDay: 1_000_000 };
    expect(read(env).budget).toEqual(budget);
  });

  it.each<[string, Variables, RegExp[]]>([
    [
      'a key without a model',
      { EARSHOT_INFERENCE_API_KEY },
      [/no model is\. Set EARSHOT_INFERENCE_MODEL to one/],
    ],
    [
      'a model without a key',
      { EARSHOT_INFERENCE_MODEL },
      [/there is no key\. Set EARSHOT_INFERENCE_API_KEY/],
    ],
    [
      'a key and a model that is none',
      { EARSHOT_INFERENCE_API_KEY, EARSHOT_INFERENCE_MODEL: 'gpt' },
      [/^EARSHOT_INFERENCE_MODEL: must have the form/],
    ],
    [
      'a model and a key in a file that is not there',
      { EARSHOT_INFERENCE_MODEL, EARSHOT_INFERENCE_API_KEY_FILE: 'gone' },
      [/EARSHOT_INFERENCE_API_KEY_FILE names cannot be read \(ENOENT\)/],
    ],
    [
      'a key and a mistyped model',
      { EARSHOT_INFERENCE_API_KEY, EARSHOT_INFERENCE_MODLE: EARSHOT_INFERENCE_MODEL },
      [/Did you mean EARSHOT_INFERENCE_MODEL\?/],
    ],
    [
      'a key without a model, beside a wrong address',
      { EARSHOT_INFERENCE_API_KEY, EARSHOT_INFERENCE_URL: 'http://inference.example.org' },
      [/^EARSHOT_INFERENCE_URL: must be an https URL/, /no model is/],
    ],
    [
      'each product told, without the index',
      { EARSHOT_SUMMARY: 'each', EARSHOT_INDEX: 'off' },
      [/^EARSHOT_SUMMARY=each needs the product index.*Set EARSHOT_INDEX=on/],
    ],
  ])('is refused with %s, which is told once', (_title, env, problems) => {
    expect(problemsWith(env)).toEqual(problems.map((problem) => expect.stringMatching(problem)));
  });

  it('needs no index where nothing is told by itself', () => {
    expect(read({ ...both, EARSHOT_INDEX: 'off' })).toMatchObject({ rule: 'off' });
  });

  it('reports its problems with those of all else, and tells no secret', () => {
    const secret = 'hunter2 with blanks';
    const env = {
      ...enough,
      EARSHOT_LISTEN: 'x',
      EARSHOT_SUMMARY: 'x',
      EARSHOT_INFERENCE_API_KEY: secret,
      EARSHOT_INFERENCE_URL: `https://me:${secret}@inference.example.org`,
      EARSHOT_TYPO: '1',
    };
    const all = environment(env);
    const error = refusalOf(() =>
      readAll(
        () => readServeConfig(all),
        () => readSummaryConfig(all),
      ),
    );
    expect(error.details.map((problem) => /^\w+/.exec(problem)?.[0])).toEqual([
      'EARSHOT_TYPO',
      'EARSHOT_LISTEN',
      'EARSHOT_SUMMARY',
      'EARSHOT_INFERENCE_URL',
      'EARSHOT_INFERENCE_API_KEY',
    ]);
    expect(wholeTextOf(error)).not.toContain('hunter2');
  });

  it('cannot be changed', () => {
    const config = read(both);
    const parts = [config, config.inference, config.budget];
    expect(parts.map((part) => Object.isFrozen(part))).toEqual([true, true, true]);
  });
});
