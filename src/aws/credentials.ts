/**
 * This process's AWS credentials: one default SDK chain for all clients. The SDK does not limit credential processes; one that hangs
 * would block every request. Here, a request gives up with an error, and the next one waits for the same attempt. The chain's last error
 * does not say what each link lacked, so that is read from its debug log (@aws-sdk/credential-provider-node 3.972): if a new version
 * words it differently, faults name only the chain, and test/aws/credentials.test.ts, which runs the real chain, fails.
 */
import { defaultProvider } from '@aws-sdk/credential-provider-node';
import { printable } from '../base/texts.ts';

/** Returns the credentials that are valid now. Throws {@link CredentialsError}. */
export type CredentialsProvider = () => ReturnType<ReturnType<typeof defaultProvider>>;

/** The AWS credentials cannot be obtained. It has the name of the SDK's own error, by which faults.ts recognises it. */
class CredentialsError extends Error {
  override readonly name = 'CredentialsProviderError';
}

interface CredentialsOptions {
  /** The region for STS, unless the profile that names the role has a region. */
  readonly region: string;
  /** How requests to STS and to IAM Identity Center are sent. */
  readonly requestHandler: object;
  /** Default {@link LIMIT_MS}. */
  readonly limitMs?: number;
}

/**
 * STS answers within a second or two, and a credential process that signs in over the network within ten. The limit is below the
 * default shutdown time-out, within which a receive that waits for credentials must end.
 */
const LIMIT_MS = 20_000;
const REASON_LENGTH_MAX = 300;
/** The chain has seven links; a profile's roles add some. */
const REASONS_MAX = 12;

/** The line by which the SDK logs that a link has no credentials, and why. */
const NO_CREDENTIALS = /^@smithy\/property-provider (?:->|\(!\)) (.*)/s;
/** Reasons that help nobody: the link was not configured, or only says that others failed. */
const UNHELPFUL_REASON = /^(?:AWS_PROFILE is set|Skipping SSO|Could not load credentials from|AWS_EC2_METADATA_V1_DISABLED)/;
/** Node's error for a failed process begins with the command, whose arguments may be secrets; the process's own output follows. */
const COMMAND = /Command failed: [^\n]*\n?/;

/** Creates the provider. Concurrent callers share an attempt, and its credentials are used until they expire. */
export function createCredentials({ region, requestHandler, limitMs = LIMIT_MS }: CredentialsOptions): CredentialsProvider {
  /** What the links lack, in the running attempt or the last one. */
  const reasons = new Set<string>();
  // warnings go to the console, like those of the SDK's other parts
  const logger = { ...console, debug: (text: unknown) => note(String(text)) };
  // each provider reads either `clientConfig` or `parentClientConfig`
  const chain = defaultProvider({ logger, clientConfig: { requestHandler }, parentClientConfig: { region, requestHandler } });
  let running = 0;

  function note(text: string): void {
    const reason = textOf(NO_CREDENTIALS.exec(text)?.[1] ?? '');
    if (reason !== '' && !UNHELPFUL_REASON.test(reason) && reasons.size < REASONS_MAX) reasons.add(reason);
  }

  function errorOf(error: unknown): CredentialsError {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    const text = textOf(message);
    const isKnown = reasons.has(text) || (reasons.size > 0 && UNHELPFUL_REASON.test(text));
    const last = isKnown ? [] : [name.endsWith('ProviderError') ? text : `${name}: ${text}`];
    return new CredentialsError(`no credentials: ${[...reasons, ...last].join('; ')}`);
  }

  return async function credentials() {
    if (running === 0) reasons.clear();
    running += 1;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new CredentialsError(`the chain gave no answer within ${limitMs} ms`)), limitMs);
    try {
      return await Promise.race([chain(), late.promise]);
    } catch (error) {
      throw errorOf(error);
    } finally {
      running -= 1;
      clearTimeout(timer);
    }
  };
}

const textOf = (text: string): string => printable(text.replace(COMMAND, 'the credential_process failed: ').trim(), REASON_LENGTH_MAX);
