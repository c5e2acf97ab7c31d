/** Renewals by http-01 under load. */
import { describeRenewalUnderLoad } from './certificate-load.ts';

describeRenewalUnderLoad('http-01');
