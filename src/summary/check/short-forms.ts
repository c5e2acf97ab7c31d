/** Short forms of what the facts say in words, and adjectives of countries. */

/** By the words of the facts that they stand for. */
const shortForms: readonly (readonly [RegExp, string])[] = [
  [/ground range detected/, 'grd'],
  [/high-resolution ground range detected/, 'grdh'],
  [/single[ -]look complex/, 'slc'],
  [/ocean wind, wave and surface velocity/, 'ocn'],
  [/\braw\b/, 'raw'],
  [/cloud-optimised/, 'cog'],
  [/top-of-atmosphere/, 'toa'],
  [/(?<!-)\bsurface reflectance/, 'boa'],
  [/near real time|NRT-/, 'nrt'],
  [/non time critical/, 'ntc'],
  [/short time critical/, 'stc'],
  [/land surface temperature/, 'lst'],
  [/sea surface temperature/, 'sst'],
  [/fire radiative power/, 'frp'],
  [/aerosol optical depth/, 'aod'],
  [/satellite navigation/, 'gnss'],
];

/** In small letters. */
export function shortFormsOf(text: string): string[] {
  return shortForms.filter(([words]) => words.test(text)).map(([, short]) => short);
}

const adjectives = `
  afghan: afghanistan; albanian: albania; algerian: algeria; american: united states of america, united states;
  antarctic: antarctica; argentine argentinian: argentina; australian: australia; austrian: austria;
  bangladeshi: bangladesh; belarusian: belarus; belgian: belgium; bolivian: bolivia; brazilian: brazil;
  british english: united kingdom; bulgarian: bulgaria; canadian: canada; chadian: chad; chilean: chile;
  chinese: china; colombian: colombia; croatian: croatia; cuban: cuba; czech: czechia; danish: denmark;
  dutch: netherlands; egyptian: egypt; estonian: estonia; ethiopian: ethiopia; finnish: finland; french: france;
  german: germany; greek: greece; hungarian: hungary; icelandic: iceland; indian: india; indonesian: indonesia;
  iranian: iran; iraqi: iraq; irish: ireland; israeli: israel; italian: italy; japanese: japan; kazakh: kazakhstan;
  kenyan: kenya; korean: south korea, north korea; latvian: latvia; libyan: libya; lithuanian: lithuania;
  malaysian: malaysia; mexican: mexico; mongolian: mongolia; moroccan: morocco; namibian: namibia; nigerian: nigeria;
  norwegian: norway; pakistani: pakistan; peruvian: peru; philippine filipino: philippines; polish: poland;
  portuguese: portugal; romanian: romania; russian: russia; saudi: saudi arabia; scottish welsh: united kingdom;
  serbian: serbia; slovak: slovakia; slovenian slovene: slovenia; spanish: spain; sudanese: sudan, south sudan;
  swedish: sweden; swiss: switzerland; syrian: syria; thai: thailand; tunisian: tunisia; turkish: turkey;
  ukrainian: ukraine; venezuelan: venezuela; vietnamese: vietnam; yemeni: yemen; zambian: zambia
`;

/** By the adjective, in small letters: the countries that it may be said of. */
export const countriesByAdjective: ReadonlyMap<string, readonly string[]> = new Map(
  adjectives.split(';').flatMap((entry) => {
    const [said = '', countries = ''] = entry.split(':');
    const names = countries.split(',').map((name) => name.trim());
    return said
      .trim()
      .split(/\s+/)
      .map((word) => [word, names] as const);
  }),
);
