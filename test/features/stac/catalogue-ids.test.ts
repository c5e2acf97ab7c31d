/** Ids in the catalogue's own STAC API, by names of products (facts/stac.md). */
import { expect, it } from 'vitest';
import { catalogueIds } from '../../../src/features/stac/catalogue-ids.ts';

const sentinel3 = '20240415T075229_20240415T075529_20240415T094343_0179_092_035_2340_PS2_O';
const sentinel5 = '20240415T075229_20240415T075529_33761_03_020600_20240415T094343';

it.each([
  ['S2A_MSIL2A_20260502T103021_N0511_R108_T31UFR_20260502T110008.SAFE', 'sentinel-2-l2a'],
  ['S2B_MSIL1C_20150706T105016_N0500_R051_T31TDJ_20231009T094109.SAFE', 'sentinel-2-l1c'],
  ['S1A_IW_GRDH_1SDV_20150412T050215_20150412T050240_005446_006F0E_37E7.SAFE', 'sentinel-1-grd'],
  [
    'S1A_IW_GRDH_1SDV_20150413T150755_20150413T150820_005467_006F9B_5B98_COG.SAFE',
    'sentinel-1-grd',
  ],
  ['S1A_IW_SLC__1SSV_20150731T060419_20150731T060449_007051_009965_407A.SAFE', 'sentinel-1-slc'],
  ['S1A_WV_SLC__1SSV_20150731T060419_20150731T060449_007051_009965_407A.SAFE', 'sentinel-1-slc-wv'],
  ['S1A_IW_ETA__AXDV_20230806T211729_20230806T211757_049760_05FBCB_9DD6.SAFE', 'sentinel-1-etad'],
  // Made from other products, or raw.
  ['S1A_IW_GRDH_1SDV_20240206T041137_20240206T041202_052433_06574A_9703_CARD_BS', null],
  ['S1A_IW_SLC__1ADV_20150731T060419_20150731T060449_007051_009965_407A.SAFE', null],
  ['S1A_IW_RAW__0SDV_20151126T231625_20151126T231658_008782_00C85B_BFC9.SAFE', null],
  [`S3B_OL_1_EFR____${sentinel3}_NR_003.SEN3`, 'sentinel-3-olci-1-efr-nrt'],
  [`S3A_SL_2_AOD____${sentinel3}_NR_003.SEN3`, 'sentinel-3-sl-2-aod-nrt'],
  [`S3A_SL_2_AOD____${sentinel3}_NT_003.SEN3`, null],
  [`S3A_SR_2_LAN_HY_${sentinel3}_ST_003.SEN3`, 'sentinel-3-sr-2-lan-hy-stc'],
  [`S3A_SY_2_SYN____${sentinel3}_NT_003.SEN3`, 'sentinel-3-syn-2-syn-ntc'],
  [`S5P_NRTI_L2__NO2____${sentinel5}.nc`, 'sentinel-5p-l2-no2-nrti'],
  [`S5P_OFFL_L2__O3__PR_${sentinel5}.nc`, 'sentinel-5p-l2-o3-pr-offl'],
  [`S5P_NRTI_L2__NP_BD3_${sentinel5}.nc`, null],
  [`S5P_RPRO_L1B_RA_BD7_${sentinel5}.nc`, 'sentinel-5p-l1-ra-bd7-rpro'],
  ['S1A_OPER_AUX_POEORB_OPOD_20210301T142346_V20140410T225944_20140412T005944.EOF', null],
])('of %s is in the collection %s', (name, collection) => {
  const id = name.replace(/\.[^.]+$/, '');
  expect(catalogueIds(name)).toEqual({ id, collection });
});
