/** Fact sheets as `productSheet` and `digestSheet` create them, for tests of the check. */
import type { SummaryKind } from '../../../src/domain/summaries.ts';
import type { FactSheet } from '../../../src/summary/facts/phrases.ts';

function sheet(kind: SummaryKind, facts: Record<string, string>): FactSheet {
  return { kind, facts: Object.entries(facts).map(([label, text]) => ({ label, text })) };
}

export const optical = sheet('product', {
  subject: 'product',
  satellite: 'Sentinel-2B',
  content: 'surface reflectance',
  'processing level': 'Level-2A',
  instrument: 'multispectral imager (MSI)',
  name: 'S2B_MSIL2A_20240520T101559_N0510_R065_T34UCF_20240520T135201.SAFE',
  'sensing start': '20 May 2024 10:15 UTC',
  'cloud cover': '12.3 %',
  tile: '34UCF',
  'absolute orbit number': '37633',
  'relative orbit number': '65',
  place: 'mostly Poland, with small parts of the Baltic Sea',
  'large places within': 'Gdańsk (Poland) and Gdynia (Poland)',
  area: '12,056 km²',
  publication: '20 May 2024 14:52 UTC',
  'delay from sensing to publication': '4 h 37 min',
  receipt: '20 May 2024 14:53 UTC',
  'delay from publication to receipt': '48 s',
  size: '1.1 GB',
  'processing baseline': '05.10',
  availability: 'online',
});

export const radar = sheet('product', {
  subject: 'product',
  satellite: 'Sentinel-1C',
  content: 'high-resolution ground range detected images',
  'processing level': 'Level-1',
  instrument: 'C-band synthetic-aperture radar (SAR)',
  'acquisition mode': 'interferometric wide swath (IW)',
  polarisation: 'VV and VH',
  name: 'S1C_IW_GRDH_1SDV_20260101T001022_20260101T001052_005702_00B654_2A4D.SAFE',
  'sensing start': '1 January 2026 23:10 UTC',
  'sensing duration': '30 s',
  'absolute orbit number': '5702',
  'relative orbit number': '36',
  'orbit direction': 'ascending',
  place: 'mostly the South Pacific Ocean, with small parts of Chile and the Drake Passage',
  'nearest large place': 'about 80 km south-west of Punta Arenas (Chile)',
  area: '51,093 km²',
  timeliness: 'within 24 hours (Fast-24h)',
  publication: '2 January 2026 00:17 UTC',
  'delay from sensing to publication': '1 h 7 min',
  size: '2.0 GB',
  'processor version': '004.02',
  'product id': '0ce0aaf7-9708-44e5-a35f-5171947aa748',
});

export const deleted = sheet('product', {
  subject: 'product',
  satellite: 'Sentinel-1A',
  'state in the catalogue': 'deleted because it was corrupted',
  'deletion date': '10 February 2025 08:30 UTC',
  content: 'single-look complex images',
  name: 'in no known form',
  'sensing start': '9 February 2025 08:28 UTC',
  place: 'parts of Cameroon, Chad and the Gulf of Guinea',
  area: '36,101 km²',
  'replaced by a newer processing':
    'processing baseline 05.11, published on 11 February 2025 09:00 UTC',
});

export const digest = sheet('digest', {
  subject: 'all notifications of one day',
  window: '20 May 2024 00:00 UTC to 21 May 2024 00:00 UTC',
  subscription: 'baltic-clear',
  notifications: '1,234',
  'distinct products': '1,180',
  created: '1,100',
  modified: '128',
  deleted: '6',
  collections: 'SENTINEL-2 (900), SENTINEL-1 (280)',
  'countries most often touched': 'Poland (310), Sweden (204) and Lithuania (77)',
  'seas most often touched': 'Baltic Sea (401) and Gulf of Riga (52)',
  'cloud cover': 'from 0 % to 98.7 %, median 41.5 %',
  'total size': '1.3 TB',
  'median delay from sensing to publication': '3 h 12 min',
  'longest delay from sensing to publication': '2 days',
});

export const offline = sheet('product', {
  subject: 'product',
  satellite: 'Sentinel-1A',
  content: 'raw radar signals',
  'processing level': 'Level-0',
  instrument: 'C-band synthetic-aperture radar (SAR)',
  'sensing start': '30 April 2016 21:39 UTC',
  place: 'mostly Finland, with a part of the Gulf of Bothnia',
  'nearest large place': 'less than 10 km north of Oulu (Finland)',
  'delay from sensing to publication': 'more than 8 years',
  availability: 'offline: it must be ordered before it can be downloaded',
});

export const reprocessed = sheet('product', {
  subject: 'product',
  satellite: 'Sentinel-5P',
  content: 'ozone (O3) columns',
  'processing level': 'Level-2',
  instrument: 'ultraviolet to shortwave-infrared spectrometer (TROPOMI)',
  'sensing start': '2 May 2026 00:10 UTC',
  'cloud cover': 'less than 0.1 %',
  place: 'parts of Russia and Kazakhstan',
  timeliness: 'offline processing (OFFL)',
  publication: '2 May 2026 04:00 UTC',
  availability: 'online',
  'replaces an older processing': 'processor version 02.07.01, published on 1 March 2026 00:10 UTC',
});

type TextOfSheet = readonly [FactSheet, string];

function of(facts: FactSheet, ...texts: readonly string[]): TextOfSheet[] {
  return texts.map((text) => [facts, text]);
}

/** True texts in various styles. */
export const correctTexts: readonly TextOfSheet[] = [
  ...of(
    optical,
    'This Sentinel-2B Level-2A product shows surface reflectance over northern Poland and a small part of the Baltic Sea. It was sensed on 20 May 2024 at 10:15 UTC with a cloud cover of 12.3 %.',
    'Sentinel‑2B took this scene, tile 34UCF, on May 20, 2024; Gdańsk and Gdynia lie within it. Cloud cover is 12.3%, and the product (1.1 GB) was published 4 hours and 37 minutes after sensing.',
    'On 20 May 2024, the multispectral imager (MSI) of Sentinel-2 observed an area of 12 056 km² in Poland. The data were published on the same day at 14:52 UTC and received 48 seconds later.',
    'Acquired at 10:15 UTC on 20 May 2024, the product covers 12,056 square kilometres, mostly in Poland. Its processing baseline is 05.10 and its relative orbit 65.',
    'S2B_MSIL2A_20240520T101559_N0510_R065_T34UCF_20240520T135201.SAFE is a Level-2A product from Sentinel-2B. It is online and has a size of 1.1 GB.',
    'A Sentinel 2B image of Gdansk, Gdynia and their surroundings arrived on Monday, 20 May 2024. 12.3 percent of it is cloudy.',
    'Surface reflectance (Level-2A) for tile 34UCF: sensed 2024-05-20T10:15Z, published 2024-05-20 14:52 UTC. Poland’s coast at the Baltic Sea is in view.',
    'Most of the scene lies in Poland. It was taken in May 2024 by Sentinel-2B, weighs 1.1 gigabytes and is online.',
    'The L2A product was sensed on the 20th of May 2024 and published 4h37min later, with the receipt at 14:53 UTC.',
  ),
  ...of(
    radar,
    'Sentinel-1C recorded high-resolution ground range detected images in interferometric wide swath (IW) mode, in VV and VH polarisation. The scene lies mostly over the South Pacific Ocean, about 80 km south-west of Punta Arenas in Chile.',
    'Radar images from Sentinel-1C, taken on 1 January 2026 at 23:10 UTC over 30 seconds on relative orbit 36 (ascending). They were published the next day at 00:17 UTC, 1 h 7 min after sensing.',
    'This Level-1 product of the C-band SAR covers 51,093 km2, including small parts of Chile and the Drake Passage. Both polarisations, VV/VH, are present.',
    'The C-band Synthetic Aperture Radar of Sentinel-1C imaged the South Pacific Ocean on 01/01/2026. The file has 2 GB and was delivered within 24 hours (Fast-24h).',
    'Product 0ce0aaf7-9708-44e5-a35f-5171947aa748 was made with processor version 004.02. It belongs to absolute orbit 5702.',
    'IW mode data with VV and VH polarisation were sensed from 1 January 2026 23:10 UTC on, for 30 s; publication followed on 2 January 2026 at 00:17 UTC.',
    'Published at 00:17 UTC on 2 January 2026, 67 minutes after sensing, this ascending pass shows the waters south-west of Punta Arenas.',
  ),
  ...of(
    deleted,
    'This Sentinel-1A product was deleted on 10 February 2025 at 08:30 UTC because it was corrupted. It had been sensed a day earlier, on 9 February 2025 at 08:28 UTC, over parts of Cameroon, Chad and the Gulf of Guinea.',
    'A corrupted product was removed from the catalogue on 10 Feb 2025. Its single-look complex images covered 36,101 km² in Cameroon and Chad, and a newer processing with baseline 05.11 replaces it.',
    'Deleted: single-look complex images of Sentinel-1A, sensed on 9 February 2025. A newer version was published on Feb. 11, 2025 at 9:00 a.m. UTC.',
  ),
  ...of(
    digest,
    'On 20 May 2024, 1,234 notifications about 1,180 products arrived for baltic-clear: 1,100 created, 128 modified and 6 deleted. Most came from Sentinel-2 (900), the others from Sentinel-1 (280).',
    'Between 20 May 2024 00:00 UTC and 21 May 2024 00:00 UTC, 1234 notifications were received. Poland was touched most often (310 times), followed by Sweden (204) and Lithuania (77). Among the seas, the Baltic Sea leads with 401 and the Gulf of Riga follows with 52.',
    'Cloud cover ranged from 0 to 98.7 %, with a median of 41.5 %. The products have 1.3 TB in total. The median delay from sensing to publication was 3 hours 12 minutes, and the longest 2 days.',
    'From 20 to 21 May 2024, the subscription baltic-clear brought 1,180 distinct products. Six of them were deleted. The longest delay was two days.',
    'Sweden and Lithuania were seen 204 and 77 times. The median cloud cover was 41.5 per cent; the total size reached 1.3 terabytes.',
    'During the day, 900 SENTINEL-2 and 280 SENTINEL-1 products came in. The median delay was 192 minutes, the longest 48 hours.',
    'In all, 1,100 new products, 128 changes and 6 deletions were reported. They lie mainly at the Baltic Sea.',
  ),
];

/**
 * True texts in the style of models: participles first, adjectives of countries, short forms,
 * limits, states.
 */
export const naturalTexts: readonly TextOfSheet[] = [
  ...of(
    optical,
    'Named S2B_MSIL2A_20240520T101559_N0510_R065_T34UCF_20240520T135201.SAFE, the product shows Polish territory. Tucked between Gdańsk and Gdynia, the coast of the Baltic Sea is in view.',
    'Shared between Polish land and the Baltic Sea, tile 34UCF was imaged by Sentinel-2B. The file is online, and cloud cover stands at 12.3 %.',
    'Hovering over the Baltic coast, the MSI of Sentinel-2B saw 12,056 km² on 20 May 2024. The BOA data carry processing baseline 05.10.',
    'The acquisition at 10:15 UTC was followed by publication at 14:52 UTC, with receipt at 14:53 UTC. The product is available online.',
    'Published on 20 May 2024 at 14:52 UTC, this Copernicus product was sensed at 10:15 UTC the same day on relative orbit 65 (absolute orbit number 37633).',
    'Recorded over an area of 12,056 km², the scene has 12.3 % of clouds; it was received within 48 s of its publication.',
    'Clouded to 12.3 per cent, the picture stretches over 12,056 km² of Poland and the Baltic Sea, on orbit 37633.',
  ),
  ...of(
    radar,
    'A GRD product of Sentinel-1C: GRDH images in IW mode, L1, VV and VH. The Chilean coast and the South Pacific Ocean are shown.',
    'Stretching across the South Pacific Ocean and a small part of Chilean soil, this SAR scene was recorded over 30 s and lies on ascending relative orbit 36.',
    'Taken on 1 January 2026 at 23:10 UTC and published on 2 January 2026 at 00:17 UTC, the GRD data have 2.0 GB.',
  ),
  ...of(
    deleted,
    'Withdrawn on 10 February 2025 because it was corrupted, this SLC product was superseded by a newer processing. It had been taken on 9 February 2025 over Chadian land and Cameroon.',
    'The product was removed from the catalogue on 10 February 2025; its deletion followed from corruption. Processing baseline 05.11, published on 11 February 2025 at 09:00 UTC, replaces it.',
  ),
  ...of(
    digest,
    'Six products were deleted and 128 modified. Polish land was touched 310 times, Swedish 204 and Lithuanian 77 times.',
    'Counting all of them, 1,180 products came in, from Sentinel-2 (900) and Sentinel-1 (280); delays reached at most 2 days, with cloud cover up to 98.7 %.',
  ),
  ...of(
    offline,
    'The raw data are offline and must be ordered before they can be downloaded. Sensing took place on 30 April 2016 at 21:39 UTC, more than 8 years before.',
    'This RAW product is archived; it is not online. Published over 8 years after sensing, it lies less than 10 km from Oulu, on Finnish ground.',
    'Sentinel-1A took the scene over Finland and the Gulf of Bothnia, within 10 km of Oulu. It is currently not available online. Cloud-free or not, radar sees the ground.',
  ),
  ...of(
    reprocessed,
    'The offline stream (OFFL) of Sentinel-5P delivered ozone columns, which are online. Russian and Kazakh territory was seen, and the share of clouds is below 0.1 %.',
    'It was reprocessed: it replaces an older processing with processor version 02.07.01, published on 1 March 2026 00:10 UTC. The new data were published on 2 May 2026 at 04:00 UTC.',
    'Observed on 2 May 2026 at 00:10 UTC, the O3 columns of TROPOMI have less than 0.1 % of clouds. They supersede processor version 02.07.01.',
  ),
];
