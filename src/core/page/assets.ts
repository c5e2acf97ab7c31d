/**
 * Files of the web page: style sheet, scripts and land outlines. Their URLs contain a digest of all of them, so that
 * browsers may cache them permanently.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { zippedAnswer } from '../http/compressed.ts';
import type { PreparedFile } from './assets-thread.ts';

export interface Assets {
  /** Returns the URL path of a file; scripts have the extension `js`. */
  urlOf(name: string): string;
  /** Answers a request for the URL path of a file; null for other paths. */
  answer(path: string, acceptEncoding: string): Promise<Response> | null;
}

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json',
};

/** Preparing the files takes about 100 ms. */
const prepareMsMax = 30_000;

let loaded: Promise<Assets> | undefined;

/** Loads the files, once per process. The next call after a failure retries. */
export function loadAssets(): Promise<Assets> {
  loaded ??= prepared().then(createAssets);
  loaded.catch(() => {
    loaded = undefined;
  });
  return loaded;
}

/** Runs the thread. It does not keep the process alive. */
function prepared(): Promise<PreparedFile[]> {
  // The built package contains JavaScript.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const thread = new Worker(new URL(`./assets-thread.${extension}`, import.meta.url), {
    workerData: browserFolders(),
    // Node's removal of types is experimental.
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  thread.unref();
  const timeout = setTimeout(() => void thread.terminate(), prepareMsMax).unref();
  thread.once('exit', () => clearTimeout(timeout));
  return new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('The thread ended without the files of the page.')));
  });
}

/** Returns the folders of scripts and style sheets, as URLs. A rule of a later style sheet has precedence. */
function browserFolders(): string[] {
  const features = new URL('../../features/', import.meta.url);
  const names = readdirSync(features).map((name) => new URL(`${name}/browser/`, features));
  const all = [new URL('browser/', import.meta.url), ...names.filter((one) => existsSync(one))];
  return all.map((one) => one.href);
}

function createAssets(files: readonly PreparedFile[]): Assets {
  const digest = createHash('sha256');
  const sorted = files.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  for (const { name, bytes } of sorted) digest.update(`${name} ${bytes.length}\n`).update(bytes);
  const root = `/assets/${digest.digest('hex').slice(0, 16)}/`;
  const byPath = new Map(files.map((file) => [`${root}${file.name}`, file]));
  return {
    urlOf: (name) => {
      if (!byPath.has(`${root}${name}`)) throw new Error(`The page has no file ${name}.`);
      return `${root}${name}`;
    },
    answer: (path, acceptEncoding) => {
      const file = byPath.get(path);
      return file === undefined ? null : answerFile(file, acceptEncoding);
    },
  };
}

/** The digest in the path changes with the content, so the answer never expires. */
function answerFile({ name, bytes }: PreparedFile, acceptEncoding: string) {
  const headers = {
    'Content-Type': types[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
    'Cache-Control': 'private, max-age=31536000, immutable',
  };
  return zippedAnswer(acceptEncoding, bytes, { headers });
}
