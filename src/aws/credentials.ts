/**
 * This process's AWS credentials: one default SDK chain for all clients, in which every wait is bounded. The SDK does not limit
 * credential processes; one that hangs would block every request. Here, a request gives up with an error that names the step, and the
 * next one waits for the same attempt. Steps and reasons are read from the debug log of @aws-sdk/credential-provider-node 3.972: if a
 * new version words it differently, faults name only the chain, and test/aws/credentials.test.ts, which runs the real chain, fails.
 */
import { defaultProvider } from '@aws-sdk/credential-provider-node';
import { printable } from '../base/printable.ts';

/** Returns the credentials that are valid now. Throws {@link CredentialsError}. */
export type CredentialsProvider = () => ReturnType<ReturnType<typeof defaultProvider>>;

/** The AWS credentials cannot be obtained. It has the name of the SDK's own error, by which {@link isCredentialsError} recognises it. */
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
/** Maximum length of each step's reason. */
const REASON_LENGTH_MAX = 300;
/** The chain has seven links; a profile's roles add some. */
const REASONS_MAX = 12;

const CONTAINER = 'the container’s credentials endpoint';
const METADATA = 'the instance metadata service';
/** The steps that can take long, by what the SDK logs when it begins them. */
const SLOW_STEPS: readonly (readonly [RegExp, string])[] = [
  [/credential-provider-process - fromProcess$/, 'the credential_process of the profile'],
  [/client-sts|resolveAssumeRoleCredentials|fromWebToken/, 'STS'],
  [/fromSSO$|resolveSsoCredentials|fromLoginCredentials$/, 'the sign-in service of the profile'],
  [/fromHttp$|fromContainerMetadata$|credential_source is EcsContainer/, CONTAINER],
  [/fromInstanceMetadata$|credential_source is Ec2InstanceMetadata/, METADATA],
  [/fromIni$/, 'the profile in the shared files'],
];
const CHAIN_BEGINS = /defaultProvider::fromEnv|skipping fromEnv/;
/** The line by which the SDK logs that a step has no credentials, and why. */
const NO_CREDENTIALS = /^@smithy\/property-provider (?:->|\(!\)) (.*)/s;
/** Reasons that help nobody: the provider was not configured, or only says that others failed. */
const UNHELPFUL_REASON = /^(?:AWS_PROFILE is set|Skipping SSO|Could not load credentials from|AWS_EC2_METADATA_V1_DISABLED)/;

/** Node's error for a failed process begins with the command, whose arguments may be secrets; the process's own output follows. */
const COMMAND = /Command failed: [^\n]*\n?/;

/** The last attempt of the chain. */
interface Attempt {
  step: string;
  /** Why the steps so far had no credentials. */
  reasons: string[];
  /** The running step if it asks a metadata service, whose failures the SDK does not log. */
  silentStep: string | undefined;
}

/** Creates the provider. Concurrent callers share an attempt, and its credentials are used until they expire. */
export function createCredentials({ region, requestHandler, limitMs = LIMIT_MS }: CredentialsOptions): CredentialsProvider {
  const attempt: Attempt = { step: FIRST_STEP, reasons: [], silentStep: undefined };
  // warnings go to the console, like those of the SDK's other parts
  const logger = { ...console, debug: (text: unknown) => note(attempt, String(text)) };
  // each provider reads either `clientConfig` or `parentClientConfig`
  const chain = defaultProvider({ logger, clientConfig: { requestHandler }, parentClientConfig: { region, requestHandler } });

  return async function credentials() {
    const late = Promise.withResolvers<never>();
    const giveUp = (): void => late.reject(new CredentialsError(`no credentials: ${attempt.step} gave no answer within ${limitMs} ms`));
    const timer = setTimeout(giveUp, limitMs);
    try {
      return await Promise.race([chain(), late.promise]);
    } catch (error) {
      throw error instanceof CredentialsError ? error : new CredentialsError(reasonOf(error, attempt));
    } finally {
      clearTimeout(timer);
    }
  };
}

const FIRST_STEP = 'the credential chain';

function note(attempt: Attempt, text: string): void {
  if (CHAIN_BEGINS.test(text)) {
    attempt.step = FIRST_STEP;
    attempt.reasons = [];
    attempt.silentStep = undefined;
  }
  const begun = SLOW_STEPS.find(([begins]) => begins.test(text))?.[1];
  if (begun !== undefined) {
    attempt.step = begun;
    attempt.silentStep = begun === CONTAINER || begun === METADATA ? begun : undefined;
  }
  const reason = textOf(NO_CREDENTIALS.exec(text)?.[1] ?? '');
  if (reason !== '' && !UNHELPFUL_REASON.test(reason)) addReason(attempt, reason);
}

function addReason(attempt: Attempt, reason: string): void {
  attempt.silentStep = undefined;
  const { reasons } = attempt;
  if (!reasons.includes(reason) && reasons.length < REASONS_MAX) reasons.push(reason);
}

const textOf = (text: string): string => printable(text.replace(COMMAND, 'the credential_process failed: ').trim(), REASON_LENGTH_MAX);

function reasonOf(error: unknown, { step, reasons, silentStep }: Attempt): string {
  if (!(error instanceof Error)) return `${step}: ${String(error)}`;
  // the chain's last error does not repeat the providers' reasons
  const isLast = error.message.startsWith('Could not load credentials from any providers');
  const all = silentStep === undefined ? reasons : [...reasons, `${silentStep} did not answer with credentials`];
  if (all.length > 0 && (isLast || reasons.includes(textOf(error.message)))) return `no credentials: ${all.join('; ')}`;
  const isProviders = error.name === 'CredentialsProviderError' || error.name === 'TokenProviderError';
  return `${step}: ${isProviders ? '' : `${error.name}: `}${textOf(error.message)}`;
}

const CREDENTIALS_ERROR_NAMES: ReadonlySet<string> = new Set([
  'CredentialsProviderError',
  'TokenProviderError',
  'ExpiredToken',
  'ExpiredTokenException',
  'RequestExpired',
  'RequestExpiredException',
  'TokenRefreshRequired',
  'InvalidToken',
  'InvalidAccessKeyId',
  'InvalidClientTokenId',
  'UnrecognizedClient',
  'UnrecognizedClientException',
  'MissingAuthenticationToken',
  'MissingAuthenticationTokenException',
  'IncompleteSignature',
  'IncompleteSignatureException',
  'InvalidSignatureException',
  'SignatureDoesNotMatch',
  'RequestTimeTooSkewed',
  'InvalidSecurity',
  'NotSignedUp',
  'OptInRequired',
]);

/** Whether an error is about the credentials themselves instead of what they permit, so that another policy would not help. */
export function isCredentialsError(error: unknown): error is Error {
  return error instanceof Error && CREDENTIALS_ERROR_NAMES.has(error.name);
}
