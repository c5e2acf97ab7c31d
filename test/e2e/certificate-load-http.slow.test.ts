/** Renewals by http-01 while notifications pour in. */
import { describeRenewalUnderLoad } from './certificate-load.ts';

describeRenewalUnderLoad('http-01');
