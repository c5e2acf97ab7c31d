/** A data directory with a damaged record. */

import { expect, it, onTestFinished } from 'vitest';
import { serve } from '../../../src/receiver/serve.ts';
import { StoreThread } from '../../../src/store/engine/thread.ts';
import { expectEnd, testIo } from '../../helpers/fake-io.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { replaceBody } from '../../helpers/replace-body.ts';
import { serveConfig } from '../../receiver/serve-config.ts';
import { removeIndex } from '../products/index-file/product-context.ts';
import {
  createProductContext,
  deliveryOf,
  recordOf,
  samples,
} from '../products/product-samples.ts';

const byRecord =
  "Attributes/OData.CSC.StringAttribute/any(a:a/Name eq 'origin' and a/OData.CSC.StringAttribute/Value eq 'ESA')";

/** The body of the second product is cut. */
async function createDamagedContext() {
  const context = await createProductContext();
  await context.earshot('query products');
  const [, second] = samples;
  if (second === undefined) throw new Error('There is no second sample.');
  replaceBody(context.dataDir, 2, Buffer.from(deliveryOf(second).body.slice(0, -20)));
  return { ...context, second };
}

it('lists the product on every page of the command line, with its indexed fields', async () => {
  const { dataDir, earshot, second } = await createDamagedContext();
  const run = async (words: string) => (await expectEnd(earshot(words), 0)).out;
  expect(JSON.parse(await run('query --output json'))).toHaveLength(samples.length);
  const products = JSON.parse(await run('query products --output json'));
  expect(products).toHaveLength(4);
  expect(products).toContainEqual({ Id: second.id, Name: second.name });
  expect(products).toContainEqual(recordOf(samples[0] ?? second));
  expect(JSON.parse(await run('query products --output geojson')).features).toHaveLength(4);
  const argv = ['query', 'products', '--output', 'ids', '--filter', `not ${byRecord}`];
  expect((await expectEnd(earshot(argv), 0)).out).toContain(second.id);
  removeIndex(dataDir);
  const { err } = await earshot('query products --count', { isTTY: true, columns: 80 });
  expect(err).toContain('Indexing: 100 %');
  expect(err).toContain('skipped 1 unreadable notification, kept in the log: position 2');
});

it('lists the product on every page of the private listener', async () => {
  const { dataDir, second } = await createDamagedContext();
  const listen = { host: '127.0.0.1', port: 0 };
  const console = { listen, password: undefined, catalogueUrl: 'https://catalogue.test' };
  const config = serveConfig({ dataDir, console, index: true });
  const receiver = await serve(config, silentLog, testIo({ nowUs: () => Date.now() * 1000 }));
  onTestFinished(() => receiver.close());
  const ask = async (path: string) => {
    const answer = await fetch(new URL(path, receiver.consoleUrl ?? ''));
    expect({ path, status: answer.status }).toEqual({ path, status: 200 });
    return JSON.parse(await answer.text());
  };
  expect((await ask('/api/notifications')).notifications).toHaveLength(samples.length);
  const { products } = await ask('/api/products?record=true');
  expect(products).toHaveLength(4);
  expect(products).toContainEqual(
    expect.objectContaining({ tile: '32TQM', record: { Id: second.id, Name: second.name } }),
  );
  const odata = '/odata/v1/Products?$expand=Attributes,Assets,Locations';
  expect((await ask(odata)).value).toHaveLength(4);
  expect(
    (await ask(`${odata}&$filter=${encodeURIComponent(`not ${byRecord}`)}`)).value,
  ).toHaveLength(4);
});

it('a call with an unreadable answer fails immediately', async () => {
  const thread = new StoreThread(
    new URL('../../store/unreadable-answer-child.ts', import.meta.url),
    { dataDir: '', callTimeoutSeconds: Number.POSITIVE_INFINITY },
  );
  onTestFinished(() => thread.close());
  await expect(thread.call('answer', [])).rejects.toMatchObject({ code: 'unavailable' });
});
