/** Renewals by tls-alpn-01 while notifications pour in. */
import { describeRenewalUnderLoad } from './certificate-load.ts';

describeRenewalUnderLoad('tls-alpn-01');
