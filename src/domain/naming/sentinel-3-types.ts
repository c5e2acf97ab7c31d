/** What the product types of Sentinel-3 hold (the mission's user guides). */

const contents: Readonly<Record<string, string>> = {
  OL_0_EFR___: 'full-resolution raw measurements',
  OL_1_EFR___: 'full-resolution top-of-atmosphere radiance',
  OL_1_ERR___: 'reduced-resolution top-of-atmosphere radiance',
  OL_2_LFR___: 'full-resolution land and vegetation parameters',
  OL_2_LRR___: 'reduced-resolution land and vegetation parameters',
  OL_2_WFR___: 'full-resolution ocean colour and water parameters',
  OL_2_WRR___: 'reduced-resolution ocean colour and water parameters',
  SL_0_SLT___: 'raw measurements',
  SL_1_RBT___: 'top-of-atmosphere radiance and brightness temperature',
  SL_2_LST___: 'land surface temperature',
  SL_2_WST___: 'sea surface temperature',
  SL_2_FRP___: 'fire radiative power',
  SL_2_AOD___: 'aerosol optical depth',
  SR_0_SRA___: 'raw radar echoes',
  SR_1_SRA___: 'calibrated radar echoes',
  SR_1_SRA_A_: 'aligned radar echoes',
  SR_1_SRA_BS: 'stacked radar echoes',
  SR_2_LAN___: 'surface heights over land',
  SR_2_LAN_HY: 'water levels of rivers and lakes',
  SR_2_LAN_SI: 'surface heights of sea ice',
  SR_2_LAN_LI: 'surface heights of land ice',
  SR_2_WAT___: 'sea surface heights, wave heights and wind speeds',
  MW_0_MWR___: 'raw measurements',
  MW_1_MWR___: 'calibrated brightness temperature',
  SY_2_SYN___: 'surface reflectance and aerosol',
  SY_2_AOD___: 'aerosol optical depth',
  SY_2_VGP___: 'top-of-atmosphere reflectance for vegetation',
  SY_2_VG1___: 'surface reflectance for vegetation of a day',
  SY_2_V10___: 'surface reflectance for vegetation of ten days',
};

/** For a type such as `OL_1_EFR___`; null for an unknown one. */
export function sentinel3Content(type: string): string | null {
  return Object.hasOwn(contents, type) ? (contents[type] ?? null) : null;
}
