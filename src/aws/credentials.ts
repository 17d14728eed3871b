/**
 * This process's AWS credentials: one default SDK chain for all clients, in which nothing waits without a limit.
 *
 * The SDK does not limit credential processes; one that hangs would block every request without saying why.
 * Here, a request gives up after a limit with an error that names the step, and the next request waits for the same attempt.
 */
import { defaultProvider } from '@aws-sdk/credential-provider-node';
import { printable } from '../base/printable.ts';

/** Returns the credentials that are valid now. Throws {@link CredentialsError}. */
export type CredentialsProvider = () => ReturnType<ReturnType<typeof defaultProvider>>;

/** The AWS credentials cannot be obtained. The name is the SDK's own, by which faults are recognised. */
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
 * STS answers within a second or two, and a credential process that signs in over the network within ten. It is below the
 * default time of a shutdown, in which a receive that waits for credentials must end.
 */
const LIMIT_MS = 20_000;
/** Enough of the reason of each step that had no credentials. */
const REASON_LENGTH_MAX = 300;
/** The chain has seven links; a profile's roles add some. */
const REASONS_MAX = 12;

const CONTAINER = 'the container’s credentials endpoint';
const METADATA = 'the instance metadata service';
/** The steps that can take long, by what the SDK logs when it begins them. */
const STEPS: readonly (readonly [RegExp, string])[] = [
  [/credential-provider-process - fromProcess$/, 'the credential_process of the profile'],
  [/client-sts|resolveAssumeRoleCredentials|fromWebToken/, 'STS'],
  [/fromSSO$|resolveSsoCredentials|fromLoginCredentials$/, 'the sign-in service of the profile'],
  [/fromHttp$|fromContainerMetadata$|credential_source is EcsContainer/, CONTAINER],
  [/fromInstanceMetadata$|credential_source is Ec2InstanceMetadata/, METADATA],
  [/fromIni$/, 'the profile in the shared files'],
];
const FIRST_LINK = /defaultProvider::fromEnv|skipping fromEnv/;
/** How the SDK logs that a step has no credentials, and why. */
const NO_CREDENTIALS = /^@smithy\/property-provider (?:->|\(!\)) (.*)/s;
/** Reasons of links that were not configured or that only say that others failed. */
const IDLE_LINK = /^(?:AWS_PROFILE is set|Skipping SSO|Could not load credentials from|AWS_EC2_METADATA_V1_DISABLED)/;

/** Node's error of a process that failed begins with the command, whose arguments can be secrets; what the process wrote follows. */
const COMMAND = /Command failed: [^\n]*\n?/;

/** The last attempt of the chain. */
interface Attempt {
  step: string;
  /** Why steps had no credentials. */
  reasons: string[];
  /** A step that asks a metadata service and has not given its reason, because the SDK does not log it. */
  silent: string | undefined;
}

/** Creates the provider. Concurrent callers share an attempt, and what it found is used until it expires. */
export function createCredentials({ region, requestHandler, limitMs = LIMIT_MS }: CredentialsOptions): CredentialsProvider {
  const attempt: Attempt = { step: FIRST_STEP, reasons: [], silent: undefined };
  // warnings go where those of the SDK's other parts go
  const logger = { ...console, debug: (text: unknown) => note(attempt, String(text)) };
  // each part of the chain reads one of the two
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
  if (FIRST_LINK.test(text)) {
    attempt.step = FIRST_STEP;
    attempt.reasons = [];
    attempt.silent = undefined;
  }
  const begun = STEPS.find(([begins]) => begins.test(text))?.[1];
  if (begun !== undefined) {
    attempt.step = begun;
    attempt.silent = begun === CONTAINER || begun === METADATA ? begun : undefined;
  }
  const reason = textOf(NO_CREDENTIALS.exec(text)?.[1] ?? '');
  if (reason !== '' && !IDLE_LINK.test(reason)) addReason(attempt, reason);
}

function addReason(attempt: Attempt, reason: string): void {
  attempt.silent = undefined;
  const { reasons } = attempt;
  if (!reasons.includes(reason) && reasons.length < REASONS_MAX) reasons.push(reason);
}

const textOf = (text: string): string => printable(text.replace(COMMAND, 'the credential_process failed: ').trim(), REASON_LENGTH_MAX);

function reasonOf(error: unknown, { step, reasons, silent }: Attempt): string {
  if (!(error instanceof Error)) return `${step}: ${String(error)}`;
  // the last link's error does not repeat those of the others
  const isLast = error.message.startsWith('Could not load credentials from any providers');
  const all = silent === undefined ? reasons : [...reasons, `${silent} did not answer with credentials`];
  if (all.length > 0 && (isLast || reasons.includes(textOf(error.message)))) return `no credentials: ${all.join('; ')}`;
  const isProviders = error.name === 'CredentialsProviderError' || error.name === 'TokenProviderError';
  return `${step}: ${isProviders ? '' : `${error.name}: `}${textOf(error.message)}`;
}

const NAMES: ReadonlySet<string> = new Set([
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

/** Whether an error is about the credentials, and not about what they permit: another policy would not help. */
export function isCredentialsError(error: unknown): error is Error {
  return error instanceof Error && NAMES.has(error.name);
}
