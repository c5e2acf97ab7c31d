/** Renewals by tls-alpn-01 under load. */
import { describeRenewalUnderLoad } from './certificate-load.ts';

describeRenewalUnderLoad('tls-alpn-01');
