/** The parser and the evaluation of cql2-wasm, another implementation of CQL2, to compare with. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

export interface Reference {
  /** Returns the CQL2 JSON of a text. Throws for an invalid text. */
  parse(text: string): unknown;
  /** Returns null if the filter has no truth value for the item, such as with an absent property. */
  matches(filter: unknown, item: object): boolean | null;
}

let loading: Promise<Reference> | undefined;

/** Loads the module once, because its memory is global. */
export function loadReference(): Promise<Reference> {
  loading ??= load();
  return loading;
}

/** Without the module's own loader, because Node 22 imports no WebAssembly. */
async function load(): Promise<Reference> {
  const file = createRequire(import.meta.url).resolve('cql2-wasm/cql2_wasm_bg.wasm');
  const glue = await import(pathToFileURL(file.replace(/\.wasm$/, '.js')).href);
  const imports = { './cql2_wasm_bg.js': glue };
  const { instance } = await Object(globalThis).WebAssembly.instantiate(
    readFileSync(file),
    imports,
  );
  glue.__wbg_set_wasm(instance.exports);
  Object(instance.exports).__wbindgen_start();
  return {
    parse: (text) => JSON.parse(glue.parseText(text).to_json()),
    matches: (filter, item) => {
      try {
        return glue.parseJson(JSON.stringify(filter)).matches(item);
      } catch (error) {
        if (String(error).includes('Could not reduce expression')) return null;
        throw error;
      }
    },
  };
}
