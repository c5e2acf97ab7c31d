/**
 * Counts phrases that are hard to read, by the glossary below: `npm run wording`. Fails when one is
 * found outside the permitted places. `--list` prints each place; further arguments limit the search
 * to paths that begin with them. Names in code are read word by word: `tellsOf` is read as `tells of`.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Phrase to avoid, the pattern that finds it, and what to write instead.
 * @type {[string, RegExp, string][]}
 */
const glossary = [
  ['tell, told', /\b(un)?told\b|\btell(s|ing)?\b/, 'report, print, notify, log, send; configured'],
  ['anew', /\banew\b/, 'again; rebuild, recreate, reload'],
  ['go on', /\b(go(es|ing)?|went|gone) on\b/, 'continue, resume'],
  ['mend', /\bmend(s|ed|ing)?\b/, 'fix, repair'],
  ['put right', /\bput(s|ting)? (\w+ )?right\b/, 'fix, repair'],
  ['hand over', /\bhand(s|ed|ing)?[- ](\w+ )?over\b|\bhandover\b/, 'deliver; delivery'],
  ['look at', /\blook(s|ed|ing)? (at|after|into)\b/, 'check, inspect, read'],
  ['beside', /\bbesides?\b/, 'background job; next to; in addition'],
  ['by itself', /\bby (itself|themselves)\b/, 'automatically; alone'],
  ['judge, verdict', /\bjudg\w+\b|\bverdicts?\b/, 'check, evaluate; status, finding'],
  ['stranger', /\bstrangers?\b/, 'unmanaged (subscription, certificate)'],
  ['owed', /\bow(ed|es|ing)\b/, 'expected'],
  ['heard', /\b(un)?heard\b/, 'received'],
  ['lasts, is over', /\blasts\b|\b(is|are|was|were) over\b(?! ?[\d$])/, 'is active; is resolved'],
  ['so many', /\bso many\b/, 'a count; maximum N'],
  ['for good', /\bfor good\b/, 'permanently'],
  ['in hand', /\bin hand\b/, 'in progress; in flight (requests)'],
  ['wish', /\bwish(es|ed)?\b/, 'request'],
  ['wanted', /\b(un)?wanted\b/, 'requested; desired state'],
  ['thrown away', /\bthr(ow|ows|own|ew) away\b/, 'dropped, discarded'],
  ['forget', /\bforg[eo]t(s|ten|ting)?\b/, 'drop, discard, remove'],
  ['door', /\bdoors?\b/, 'listener'],
  ['world', /\bworlds?\b/, 'context'],
  ['means (in code)', /\bmeans[:.,)]|: means\b/, 'deps'],
  ['try again', /\btr(y|ies|ied|ying) (it |them )?again\b|\bnext tr(y|ies)\b/, 'retry'],
  ['what is wrong', /\bwhat (is|was|went) wrong\b/, 'problem, fault, alert'],
  ['held', /\bheld\b(?! by\b)/, 'quarantined (body); blocked; stored'],
  ['late, behind', /\b(is|are|comes?|came|too|was) late\b/, 'lag, delay, backlog'],
  ['behind', /\b(is|are|was|runs?|falls?|far|how|too|so|stays?) behind\b/, 'lag, backlog'],
  ['in vain', /\bin vain\b|\bfor nothing\b/, 'unused, failed'],
  ['take up', /\bt(ake|akes|aken|aking|ook) up\b(?! to\b)/, 'apply, reload; use (space)'],
  ['room', /\brooms?\b/, 'free space; capacity'],
  ['in words', /\bin (\w+ )?words\b/, 'as text; summary'],
  ['lists of the catalogue', /\bcatalogue's lists\b/, 'catalogue query results'],
  [
    'a comment that begins with What, Where, Whether, Of, All, One',
    /\/\*\* (what|where|whether|of|all|one)\b/,
    'a verb in the third person, or a noun phrase',
  ],
];

/**
 * Places where a phrase stays: path (or its beginning), phrase, and the reason.
 * @type {[string, string, string][]}
 */
const permitted = [
  ['src/features/coverage/output.ts', 'late, behind', 'a time range starts too late'],
  ['test/features/coverage/reconcile-command', 'late, behind', 'a time range starts too late'],
  ['examples/alerts/', 'room', 'a room of Matrix'],
  ['test/e2e/alert-commands.test.ts', 'room', 'a room of Matrix'],
];

const args = process.argv.slice(2);
const given = args.filter((argument) => !argument.startsWith('-'));
const paths = given.length > 0 ? given : ['.'];
const skipped =
  /(^scripts\/wording\.js|^test\/supply\/wording\.test\.ts|\.(json|txt|svg)|licences\.md)$/;

/** Names of JSON fields, packages and systemd settings that contain a phrase. */
const foreignNames = /\bnextTry(At|AtUs)?\b|\bworld-atlas\b|\bWantedBy\b|\bWants\b/gi;

/** @param {string} phrase @param {string} path */
const isPermitted = (phrase, path) =>
  permitted.some(([where, what]) => what === phrase && path.startsWith(where));

/**
 * Lower case, names in code as separate words, no marks of comments at the begin of lines.
 * @param {string} text
 */
const normalized = (text) =>
  text
    .replaceAll(foreignNames, '')
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/\n[^\S\n]*(?:\*(?!\/)|\/\/|#+|>)?[^\S\n]*/g, '\n')
    .toLowerCase();

/** @param {string} path */
function phrasesIn(path) {
  const original = readFileSync(path, 'utf8');
  const [text, lines] = [normalized(original), original.split('\n')];
  return glossary.flatMap(([phrase, pattern]) => {
    if (isPermitted(phrase, path)) return [];
    const spaced = new RegExp(pattern.source.replaceAll(' ', '\\s+'), 'g');
    return [...text.matchAll(spaced)].map(({ index }) => {
      const line = text.slice(0, index).split('\n').length;
      return { phrase, place: `${path}:${line}`, text: (lines[line - 1] ?? '').trim() };
    });
  });
}

const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', ...paths], {
  encoding: 'utf8',
});
const found = files
  .split('\n')
  .filter((path) => path !== '' && !skipped.test(path))
  .flatMap(phrasesIn);

/** @param {string} line */
const print = (line) => process.stdout.write(`${line}\n`);
for (const [phrase, , instead] of glossary) {
  const places = found.filter((one) => one.phrase === phrase);
  if (places.length === 0) continue;
  print(`${String(places.length).padStart(5)}  ${phrase} -> ${instead}`);
  if (args.includes('--list')) {
    for (const { place, text } of places) print(`       ${place}: ${text.slice(0, 100)}`);
  }
}
if (found.length > 0) {
  print(
    `${found.length} phrases of the glossary in scripts/wording.js. Places: npm run wording -- --list`,
  );
  process.exitCode = 1;
}
