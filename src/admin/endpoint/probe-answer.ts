/** What an endpoint's HTTP status says about the way to the receiver. */
import type { ProbeFault } from './probe-fault.ts';

type Words = Pick<ProbeFault, 'message' | 'advice'>;

const otherProgram: Words = {
  message: 'another program answers there, or the path is not one that earshot serves',
  advice:
    'Check that the port leads to the receiver, and that a proxy in front passes /notifications on unchanged.',
};

const behindProxy: Words = {
  message: 'a proxy answers, and cannot reach the receiver behind it',
  advice: 'Start the receiver, and check the address in the configuration of the proxy.',
};

const redirect: Words = {
  message: 'it redirects, and the catalogue is not known to follow redirects',
  advice: 'Put the address that it redirects to into EARSHOT_PUBLIC_URL.',
};

const byStatus: Record<number, Words> = {
  403: {
    message: 'something in front of the receiver denies access, as earshot never answers so',
    advice: 'Look at the rules of the proxy or firewall in front.',
  },
  404: otherProgram,
  405: otherProgram,
  429: {
    message: 'there were too many logins with wrong credentials from this machine',
    advice: 'Wait for a minute, and find out what logs in with wrong credentials.',
  },
  500: {
    message: 'the receiver failed in a way it should not',
    advice: 'Look into its log, and report what stands there.',
  },
  502: behindProxy,
  503: {
    message: 'the receiver cannot write to its database, or a proxy cannot reach it',
    advice: 'Look into the log of the receiver: it names the reason, such as a full disk.',
  },
  504: behindProxy,
};

/** Null for 200, the one status that the specification asks for (What the service does, 5). */
export function faultOfStatus(status: number, withCredentials: boolean): ProbeFault | null {
  if (status === 200) return null;
  const { message, advice } = wordsFor(status, withCredentials);
  return { stage: 'answer', message: `The endpoint answers ${status}: ${message}.`, advice };
}

function wordsFor(status: number, withCredentials: boolean): Words {
  if (status === 401) return unauthorized(withCredentials);
  if (status >= 300 && status <= 399) return redirect;
  return byStatus[status] ?? { ...otherProgram, message: 'that is not an answer of earshot' };
}

function unauthorized(withCredentials: boolean): Words {
  if (!withCredentials) {
    return {
      message: 'it asks for credentials, and none were sent',
      advice: 'Probe with the endpoint credentials.',
    };
  }
  return {
    message: 'the credentials are not those that the running receiver has',
    advice:
      'Restart the receiver if they were changed since its start; behind a proxy, let it pass the Authorization header on.',
  };
}
