/** Words that say what became of a product, or what it was like there: true only where the facts say so. */
import type { FactSheet } from '../facts/fact-sheet.ts';
import type { PlacedDoubt } from './doubt.ts';

interface StateGroup {
  /** Words that mean the same. */
  said: RegExp;
  /** What the facts must hold, each as `label: text`. */
  needs?: RegExp;
  /** What they must not hold. */
  bars?: RegExp;
}

const gone = /state in the catalogue: deleted/;
const offline = /: offline: /;

function words(pattern: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}_-])(?:${pattern})(?![\\p{L}\\p{N}_])`, 'giu');
}

const was = '(?:is|are|was|were|be|been|being|gets?|got) (?:\\p{Ll}+ly |since |later |then |now )?';

const groups: readonly StateGroup[] = [
  {
    said: words(
      'deleted|deletions?|removed|removals?|withdrawn|withdrawals?|withdrew|purged|erased|' +
        'no longer (?:available|there|exists?|listed|in the catalogue)',
    ),
    needs: /\bdelet(?:ed|ions?)\b/,
  },
  { said: words('corrupt(?:ed|ion|s)?|damaged'), needs: /\bcorrupted\b/ },
  { said: words('duplicat(?:es?|ed|ion)|redundant'), needs: /\bduplicate/ },
  { said: words('checksums?'), needs: /\bchecksum\b/ },
  { said: words('obsolete|outdated'), needs: /\bobsolete\b|replaced by/ },
  { said: words(`${was}(?:replaced|superseded)|(?:replaced|superseded) by`), needs: /replaced by/ },
  { said: words('replac(?:es?|ed|ing|ements?)|supersed(?:es?|ed|ing)'), needs: /\breplace[sd]\b/ },
  { said: words('re-?process(?:ed|ing|ings)'), needs: /\breprocess|\breplace[sd]\b/ },
  { said: words('modified|modifications?|altered|amended'), needs: /\bmodified\b/ },
  {
    said: words(`${was}off-?line(?! processing)|taken off-?line|kept off-?line`),
    needs: offline,
  },
  { said: words('off-?line'), needs: /\boffline\b/ },
  {
    said: words('archived|on tape|(?:not|must be|to be|has to be) (?:online|ordered)'),
    needs: offline,
  },
  {
    said: words('unavailable|not (?:yet |currently |now |immediately )?(?:available|downloadable)'),
    needs: /offline|deleted|none in the record|without a footprint|not known/,
  },
  { said: words('(?<!not )(?<!not \\p{Ll}{3,12} )online|downloadable'), needs: /: online\b/ },
  {
    said: words(
      '(?:is|are|remains?|now|currently|readily|immediately|still) available|' +
        '(?:available|ready) for download',
    ),
    bars: new RegExp(`${gone.source}|${offline.source}`),
  },
  // No facts of ours say so.
  {
    said: words(
      'embargoed|confidential|quarantined|restricted|recalled|suspended|cancell?ed|rejected|' +
        'unusable|truncated|degraded|incomplete|faulty|defective',
    ),
    needs: /(?!)/,
  },
];

/** Besides cloud cover the facts have no percentages. */
const measured =
  'snow|ice|rain|fog|haze|water|land|sea|forest|vegetation|shadow|humidity|moisture|urban|' +
  'probability|confidence|accuracy|quality|completeness|success';
const beforePercent = new RegExp(
  `(?<![\\p{L}-])(?:${measured})(?: cover(?:age)?| fraction| share| rate| level| score)?,? ` +
    '(?:(?:is|was|of|at|reach(?:es|ed)|stands at|amounts to) )?(?:about )?' +
    '(?=[0-9][0-9.,]* ?(?:%|per ?cent))',
  'giu',
);
const afterPercent = words(
  '(?<=[0-9] ?(?:%|per ?cent) (?:of (?:it|them|(?:the|its|this) \\p{Ll}+) )?' +
    '(?:(?:is|are|was|were) )?)' +
    `(?:clear|cloudless|cloud-free|free|sunny|${measured}|valid|complete|usable)`,
);

/** States and measures of a text that the facts do not bear out. */
export function stateDoubts(text: string, sheet: FactSheet): PlacedDoubt[] {
  const lines = sheet.facts.map((fact) => `${fact.label}: ${fact.text}`).join('\n');
  const unfounded = groups.filter(({ needs, bars }) => {
    return (needs !== undefined && !needs.test(lines)) || bars?.test(lines) === true;
  });
  return [...unfounded.map(({ said }) => said), beforePercent, afterPercent].flatMap((said) =>
    [...text.matchAll(said)].map((match): PlacedDoubt => {
      return { kind: 'state', start: match.index, end: match.index + match[0].trimEnd().length };
    }),
  );
}
