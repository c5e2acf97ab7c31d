/** True texts as models write them: participles first, adjectives of countries, short forms, limits, states. */
import type { FactSheet } from '../../../src/summary/facts/phrases.ts';
import { deleted, digest, offline, optical, radar, reprocessed } from './sample-sheets.ts';

export const naturalTexts: readonly (readonly [FactSheet, string])[] = [
  [
    optical,
    'Named S2B_MSIL2A_20240520T101559_N0510_R065_T34UCF_20240520T135201.SAFE, the product shows Polish territory. Tucked between Gdańsk and Gdynia, the coast of the Baltic Sea is in view.',
  ],
  [
    optical,
    'Shared between Polish land and the Baltic Sea, tile 34UCF was imaged by Sentinel-2B. The file is online, and cloud cover stands at 12.3 %.',
  ],
  [
    optical,
    'Hovering over the Baltic coast, the MSI of Sentinel-2B saw 12,056 km² on 20 May 2024. The BOA data carry processing baseline 05.10.',
  ],
  [
    optical,
    'The acquisition at 10:15 UTC was followed by publication at 14:52 UTC, with receipt at 14:53 UTC. The product is available online.',
  ],
  [
    optical,
    'Published on 20 May 2024 at 14:52 UTC, this Copernicus product was sensed at 10:15 UTC the same day on relative orbit 65 (absolute orbit number 37633).',
  ],
  [
    optical,
    'Recorded over an area of 12,056 km², the scene has 12.3 % of clouds; it was received within 48 s of its publication.',
  ],
  [
    optical,
    'Clouded to 12.3 per cent, the picture stretches over 12,056 km² of Poland and the Baltic Sea, on orbit 37633.',
  ],
  [
    radar,
    'A GRD product of Sentinel-1C: GRDH images in IW mode, L1, VV and VH. The Chilean coast and the South Pacific Ocean are shown.',
  ],
  [
    radar,
    'Stretching across the South Pacific Ocean and a small part of Chilean soil, this SAR scene was recorded over 30 s and lies on ascending relative orbit 36.',
  ],
  [
    radar,
    'Taken on 1 January 2026 at 23:10 UTC and published on 2 January 2026 at 00:17 UTC, the GRD data have 2.0 GB.',
  ],
  [
    deleted,
    'Withdrawn on 10 February 2025 because it was corrupted, this SLC product was superseded by a newer processing. It had been taken on 9 February 2025 over Chadian land and Cameroon.',
  ],
  [
    deleted,
    'The product was removed from the catalogue on 10 February 2025; its deletion followed from corruption. Processing baseline 05.11, published on 11 February 2025 at 09:00 UTC, replaces it.',
  ],
  [
    digest,
    'Six products were deleted and 128 modified. Polish land was touched 310 times, Swedish 204 and Lithuanian 77 times.',
  ],
  [
    digest,
    'Counting all of them, 1,180 products came in, from Sentinel-2 (900) and Sentinel-1 (280); delays reached at most 2 days, with cloud cover up to 98.7 %.',
  ],
  [
    offline,
    'The raw data are offline and must be ordered before they can be downloaded. Sensing took place on 30 April 2016 at 21:39 UTC, more than 8 years before.',
  ],
  [
    offline,
    'This RAW product is archived; it is not online. Published over 8 years after sensing, it lies less than 10 km from Oulu, on Finnish ground.',
  ],
  [
    offline,
    'Sentinel-1A took the scene over Finland and the Gulf of Bothnia, within 10 km of Oulu. It is currently not available online. Cloud-free or not, radar sees the ground.',
  ],
  [
    reprocessed,
    'The offline stream (OFFL) of Sentinel-5P delivered ozone columns, which are online. Russian and Kazakh territory was seen, and the share of clouds is below 0.1 %.',
  ],
  [
    reprocessed,
    'It was reprocessed: it replaces an older processing with processor version 02.07.01, published on 1 March 2026 00:10 UTC. The new data were published on 2 May 2026 at 04:00 UTC.',
  ],
  [
    reprocessed,
    'Observed on 2 May 2026 at 00:10 UTC, the O3 columns of TROPOMI have less than 0.1 % of clouds. They supersede processor version 02.07.01.',
  ],
];
