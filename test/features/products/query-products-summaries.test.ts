/** `earshot query products --summaries`: a summary with each product, in every format. */

import { afterAll, describe, expect, it } from 'vitest';
import { printedJson } from '../../helpers/fake-io.ts';
import { doneWith } from '../summary/summary-jobs.ts';
import { hostile, putSummaries, steering } from '../summary/summary-samples.ts';
import { createProductContext, guid, recordOf, samples } from './product-samples.ts';

// These tests only read. Product 3 has no text, 4 one of the template, 5 is deleted.
const context = await createProductContext(afterAll);
await putSummaries(context.dataDir, [
  { result: doneWith('Written by a model.') },
  { result: doneWith(hostile) },
  {},
  { result: doneWith('Made before.', { model: null }) },
  { result: doneWith('It was deleted.') },
]);

const query = (words: readonly string[], isTTY = false) =>
  context.earshot(['query', 'products', '--orderby', 'received asc', '--summaries', ...words], {
    isTTY,
    env: { NO_COLOR: '1' },
  });

const gone = (...words: string[]) =>
  context.earshot(['query', 'products', '--deleted', '--summaries', ...words]);

const written = {
  text: 'Written by a model.',
  model: 'a/b',
  facts: { mission: 'Sentinel-2A' },
  createdAt: '2026-11-18T11:06:40.000001Z',
};
const ofFacts = {
  text: expect.stringMatching(/^Sentinel-1A: /),
  model: null,
  facts: expect.objectContaining({ mission: 'Sentinel-1A' }),
  createdAt: '2026-05-02T12:00:00.000000Z',
};

describe('the summary of a product', () => {
  it('is in each record as json and ndjson: the stored one, otherwise one made of the facts', async () => {
    const rows = await printedJson(query(['--json']));
    expect(rows[0]).toEqual({ ...recordOf(samples[0] ?? expect.fail()), summary: written });
    expect(rows[1].summary).toMatchObject({ text: hostile });
    expect(rows[2].summary).toEqual(ofFacts);
    expect(rows[3].summary).toMatchObject({ text: 'Made before.', model: null });
    const lines = (await query(['--output', 'ndjson'])).out.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(rows);
    const [deleted] = await printedJson(gone('--json'));
    expect(deleted).toMatchObject({ Id: guid('5'), summary: { text: 'It was deleted.' } });
  });

  it('is two more columns as csv, without formulas', async () => {
    const { out } = await query(['--output', 'csv']);
    const [header, first, second] = out.split('\n');
    expect(header).toMatch(/,s3Path,downloadUrl,summary,summaryModel$/);
    expect(first).toMatch(/,Written by a model\.,a\/b$/);
    expect(second).toContain(`,"'=1+1 `);
    expect(out).toMatch(/,Made before\.,\n$/);
    expect((await gone('--output', 'csv')).out).toMatch(/,It was deleted\.,a\/b\n$/);
    expect((await query(['--name', 'x', '--output', 'csv'])).out).toBe(`${header}\n`);
  });

  it('is a property as geojson, and follows the id as ids', async () => {
    const { features } = await printedJson(query(['--output', 'geojson']));
    expect(features[0].properties).toMatchObject({ productId: guid('1'), summary: written });
    expect(features[2]).toMatchObject({ geometry: {}, properties: { summary: ofFacts } });
    const { out } = await query(['--output', 'ids']);
    const lines = out.split('\n');
    expect(lines[0]).toBe(`${guid('1')}\tWritten by a model.`);
    // One line each with two fields, whatever the text contains.
    expect(lines.map((line) => line.split('\t').length)).toEqual([2, 2, 2, 2, 1]);
  });

  it('is printed below each product in a table, deleted or not', async () => {
    const { out, err } = await query(['--limit', '3']);
    expect(out).toContain(
      `2026-05-01 10:30  ${samples[0]?.name}  S2MSI2A  12.5 %  1.2 GB\n  Written by a model.\n\n`,
    );
    expect(out).toMatch(/\n {2}Sentinel-1A: /);
    expect(err).toBe('3 rows. For more rows, set --limit.\n');
    expect((await gone()).out).toBe(
      `2026-05-02 06:00  ${samples[4]?.name}  Duplicated product\n  It was deleted.\n\n`,
    );
  });

  it('contains no control characters, in any format', async () => {
    for (const form of ['table', 'json', 'ndjson', 'csv', 'geojson', 'ids']) {
      const { code, out } = await query(['--output', form], true);
      expect({ form, code, out: out.match(steering)?.[0] }).toEqual({ form, code: 0 });
      expect(out).toContain('=1+1');
    }
  });
});
