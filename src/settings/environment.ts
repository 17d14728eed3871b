/** What Tally reads from the variables of other products: the AWS SDK's, and those that name a proxy. */
import { endpointsBy, type Endpoints } from '../aws/addresses.rules.ts';

/** The values of the AWS SDK’s own variables that Tally uses. Credentials and the shared files are left to the SDK. */
export interface AwsEnvironment {
  /** Absent: that of the profile. */
  readonly region: string | undefined;
  /** An absent endpoint is that of the profile, else that of AWS itself. */
  readonly endpoints: Endpoints;
  /** Whether all configured endpoints are to be ignored; undefined leaves it to the profile. */
  readonly ignoresEndpoints: boolean | undefined;
}

/** Reads the variables as the SDK does: AWS_REGION, AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE>. */
export function awsEnvironment(environment: Readonly<Record<string, string | undefined>>): AwsEnvironment {
  const set = (name: string): string | undefined => (environment[name] === '' ? undefined : environment[name]);
  const ignores = set('AWS_IGNORE_CONFIGURED_ENDPOINT_URLS');
  return {
    region: set('AWS_REGION') ?? set('AWS_DEFAULT_REGION'),
    endpoints: endpointsBy((service) => set(`AWS_ENDPOINT_URL_${service}`) ?? set('AWS_ENDPOINT_URL')),
    ignoresEndpoints: ignores === undefined ? undefined : ignores === 'true',
  };
}

// ── the proxy for requests to AWS and OpenSearch, in upper or lower case ───────────────────────────────────────────

/** In the form in which Node's agents take them. */
export interface ProxyVariables {
  readonly [name: string]: string;
  /** Host names, host:port, domains (`.internal`) and ranges of IPv4 addresses, separated by commas. */
  readonly no_proxy: string;
}

/** What a process uses of the variables of other products than Tally. */
export interface OuterEnvironment extends AwsEnvironment {
  /** Absent: requests use no proxy. */
  readonly proxy?: ProxyVariables | undefined;
}

type ProxyResult =
  /** `proxy` is undefined when no proxy is set. */
  { readonly ok: true; readonly proxy: ProxyVariables | undefined } | { readonly ok: false; readonly mistakes: readonly string[] };

/** Nothing on this machine is reached through a proxy; the embedded server is here too. SDKs write IPv6 addresses in both forms. */
const LOOPBACK = ['localhost', '127.0.0.1', '::1', '[::1]'];

/**
 * Reads HTTPS_PROXY (for https URLs), HTTP_PROXY (for http URLs) and NO_PROXY. The name in lower case comes first, as in
 * Node and curl. A proxy of another kind is a mistake, because Node would silently use none. Mistakes never repeat a
 * value, which can contain a password.
 */
export function parseProxy(environment: Readonly<Record<string, string | undefined>>): ProxyResult {
  const set = (name: string): string | undefined => (environment[name]?.trim() === '' ? undefined : environment[name]?.trim());
  const found = (['https_proxy', 'http_proxy'] as const).flatMap((name) => {
    const source = set(name) === undefined ? name.toUpperCase() : name;
    const value = set(source);
    return value === undefined ? [] : [{ name, source, url: withScheme(value) }];
  });
  const mistakes = found
    .filter(({ url }) => !isProxyUrl(url))
    .map(({ source }) => `${source}: must be the http or https URL of a proxy, http://HOST:PORT: Tally does not support other proxies`);
  if (mistakes.length > 0) return { ok: false, mistakes };
  if (found.length === 0) return { ok: true, proxy: undefined };
  const except = set('no_proxy') ?? set('NO_PROXY');
  const no_proxy = [...(except === undefined ? [] : [except]), ...LOOPBACK].join(',');
  return { ok: true, proxy: { ...Object.fromEntries(found.map(({ name, url }) => [name, url])), no_proxy } };
}

/** The proxy with one more host that is reached without it. */
export function withoutProxyFor(hostname: string, proxy: ProxyVariables | undefined): ProxyVariables | undefined {
  return proxy && { ...proxy, no_proxy: `${proxy.no_proxy},${hostname}` };
}

/** HOST:PORT means http, as in curl and Go. */
function withScheme(text: string): string {
  return text.includes('://') ? text : `http://${text}`;
}

function isProxyUrl(text: string): boolean {
  if (!/^https?:\/\/\S+$/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}
