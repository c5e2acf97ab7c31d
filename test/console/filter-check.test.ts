/** `/api/filter/check`, as the filter box of the page uses it. */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../src/domain/app-error.ts';
import { checkFilter } from '../../src/filter/check.ts';
import { openConsole, openFilled } from './console-context.ts';

interface Completion {
  label: string;
  text: string;
  start: number;
  end: number;
  caret: number;
}

type Context = Pick<Awaited<ReturnType<typeof openConsole>>, 'get'>;

/** Checks a filter in which `|` marks the position. */
async function complete({ get }: Context, marked: string, more = ''): Promise<Completion[]> {
  const [before = '', after = ''] = marked.split('|');
  const filter = encodeURIComponent(before + after);
  const { json, status } = await get(
    `/api/filter/check?filter=${filter}&position=${before.length}${more}`,
  );
  expect(status).toBe(200);
  return json.completions;
}

const labels = (completions: Completion[]) => completions.map(({ label }) => label);

/** Returns the filter after a completion was accepted, with `|` at the new position. */
function accepted(marked: string, { text, start, end, caret }: Completion): string {
  const filter = marked.replace('|', '');
  return `${filter.slice(0, start)}${text.slice(0, caret)}|${text.slice(caret)}${filter.slice(end)}`;
}

describe('/api/filter/check', () => {
  it('reports the findings of the command line, each with an excerpt that marks the place', async () => {
    const { get } = await openConsole();
    const filter = "Collection/Name eq 'SENTINEL-9' and Onlin eq true";
    const { status, json } = await get(`/api/filter/check?filter=${encodeURIComponent(filter)}`);
    expect(status).toBe(200);
    expect(json).toMatchObject({ valid: false, entity: 'Products', canonical: null });
    const { findings } = checkFilter(filter, 'Products');
    expect(findings.length).toBe(2);
    expect(json.findings).toMatchObject(findings.map((one) => ({ hint: null, ...one })));
    expect(json.findings[1].excerpt).toEqual({
      before: "Collection/Name eq 'SENTINEL-9' and ",
      marked: 'Onlin',
      after: ' eq true',
    });
    expect(json.completions).toEqual([]);
  });

  it('normalizes a valid filter, and checks for the entity', async () => {
    const { get } = await openConsole();
    const filter = encodeURIComponent("((Online eq true)) and Name eq 'a'");
    const { json } = await get(`/api/filter/check?filter=${filter}`);
    expect(json).toMatchObject({ valid: true, canonical: "Online eq true and Name eq 'a'" });
    const gone = await get(`/api/filter/check?filter=${filter}&entity=DeletedProducts`);
    expect(gone.json.findings[0]).toMatchObject({ code: 'field-of-other-entity', start: 2 });
  });

  it.each([
    ['a NUL character', '\0'],
    ['a quote', "'"],
    ['open parentheses', '(('],
    ['a long string', `Name eq '${'x'.repeat(5_000)}`],
    ['a bidi mark', '\u202e'],
  ])('answers a bad filter with 200: %s', async (_, filter) => {
    const { get } = await openConsole();
    const path = `/api/filter/check?filter=${encodeURIComponent(filter)}&position=99999`;
    const { status, json } = await get(path);
    expect(status).toBe(200);
    expect(json.findings[0].severity).toBe('error');
    expect(JSON.stringify(json.findings[0].excerpt)).not.toMatch(/\u202e/);
  });

  it('completes properties, operators and collections', async () => {
    const context = await openConsole();
    expect(labels(await complete(context, 'Coll|'))[0]).toBe('Collection/Name');
    expect(labels(await complete(context, 'con|'))[0]).toBe('contains');
    expect(labels(await complete(context, 'Start|'))).toContain('ContentDate/Start');
    expect(labels(await complete(context, 'Collection/Name |'))).toEqual(['eq']);
    expect(labels(await complete(context, 'ContentDate/Start |'))).toContain('ge');
    const [first] = await complete(context, "Collection/Name eq 'SENTINEL-2|' and Online eq true");
    expect(first && accepted("Collection/Name eq 'SENTINEL-2|' and Online eq true", first)).toBe(
      "Collection/Name eq 'SENTINEL-2'| and Online eq true",
    );
    expect(labels(await complete(context, 'Online eq true |'))).toEqual(['and', 'or']);
    expect(labels(await complete(context, 'Deletion|'))).toEqual([]);
    const deleted = await complete(context, 'Deletion|', '&entity=DeletedProducts');
    expect(labels(deleted)).toEqual(['DeletionDate', 'DeletionCause']);
  });

  it('completes an attribute to a whole condition, of the collection that the filter names', async () => {
    const context = await openConsole();
    const marked = "Collection/Name eq 'SENTINEL-2' and cloud|";
    const offers = await complete(context, marked);
    expect(labels(offers)).toEqual(['cloudCover']);
    const filter = offers[0] ? accepted(marked, offers[0]).replace('|', '20') : '';
    expect(checkFilter(filter, 'Products').findings).toEqual([]);
    expect(labels(await complete(context, 'cloud|'))).toContain('cloudCoverLand');
  });

  it('completes values of attributes that were received', async () => {
    const context = await openFilled();
    const values = { productType: [{ value: 'S2MSI2A', count: 3 }] } as never;
    context.products.facets = async () => ({ counted: 3, complete: true, values });
    const attribute = 'Attributes/OData.CSC.StringAttribute/any(att:att/Name eq ';
    const value = 'att/OData.CSC.StringAttribute/Value eq ';
    expect(labels(await complete(context, `${attribute}'productType' and ${value}|)`))).toEqual([
      'S2MSI2A',
    ]);
    expect(labels(await complete(context, `${attribute}'product|`))).toContain('productType');
  });

  it('offers nothing inside a complete string or after a complete word', async () => {
    const context = await openConsole();
    expect(await complete(context, "Name eq 'abc|")).toEqual([]);
    expect(await complete(context, 'Name eq|')).toEqual([]);
  });

  it('offers nothing instead of failing without an index', async () => {
    const context = await openConsole();
    context.products.facets = () => Promise.reject(new AppError('unavailable', 'No index.'));
    expect(labels(await complete(context, 'Onl|'))[0]).toBe('Online');
  });
});
