/** The identity settings: who may log in, where the registry is, and the audit. */
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import { allowedRuleOf, claimRuleOf, type LoginRules, isPublicIssuer } from '../identity/claims.rules.ts';
import { brokenOf, flag, integer, itemsOf, optionalPath } from './fields.ts';
import { isLoopback, originUrl } from './urls.ts';

/** Rules and addresses are evaluated one by one at each login or request. */
const ITEMS_MAX = 100;

const listOf = (isItem: (text: string) => boolean, mistake: string) =>
  z
    .string()
    .optional()
    .transform((text) => itemsOf(text ?? ''))
    .pipe(z.array(z.string().refine(isItem, mistake)).max(ITEMS_MAX, `must have at most ${ITEMS_MAX} items`));

export const identitySettings = {
  TALLY_OIDC_ISSUER: z
    .string()
    .trim()
    .refine((text) => !/[{}]/.test(text), 'must be the address of one tenant, without { and }')
    .refine(isIssuer, 'must be the https URL of an OpenID Connect issuer, without user, query and fragment (http for loopback only)')
    .optional()
    .describe(
      'The address of the OpenID Connect issuer for logins, exactly as in its discovery document. If set, every caller of the control plane must log in or have an API key. If not, the control plane serves only this machine, without authentication.',
    ),
  TALLY_OIDC_CLIENT_ID: z
    .string()
    .trim()
    .min(1)
    .optional()
    .describe("The registry's client ID at the issuer. Its redirect URI there is TALLY_PUBLIC_URL plus /login/callback."),
  TALLY_OIDC_CLIENT_SECRET: z
    .string()
    .trim()
    .min(1)
    .optional()
    .describe('The client secret at the issuer. Without one, the client is public, and only PKCE protects the login.'),
  TALLY_OIDC_CLIENT_SECRET_FILE: optionalPath.describe('A file with the value of TALLY_OIDC_CLIENT_SECRET.'),
  TALLY_OIDC_SCOPES: z
    .string()
    .trim()
    .regex(/^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/, 'must be scopes separated by single spaces')
    .refine((text) => text.split(' ').includes('openid'), 'must contain openid')
    .default('openid email profile')
    .describe(
      'The scopes to request from the issuer, separated by spaces. The default yields the e-mail address. Some issuers send groups only with an additional scope, such as groups.',
    ),
  TALLY_OIDC_ALLOWED: listOf(
    (text) => allowedRuleOf(text) !== undefined,
    'must be of domain=example.com, claim:PATH=VALUE and any, separated by commas',
  ).describe(
    'Who may log in, required with TALLY_OIDC_ISSUER: rules separated by commas, one of which must apply. domain=example.com: a verified e-mail address in this domain. claim:groups=tally-users: a claim with this value, or a list that contains it; dots lead into objects. any: everyone the issuer knows.',
  ),
  TALLY_OIDC_TRUST_EMAIL: flag(false).describe(
    "Whether to treat an e-mail address as verified if the issuer does not say. The default is false, because at many issuers people choose their own address. Set it only for a single organisation's issuer, which assigns the addresses.",
  ),
  TALLY_OIDC_ADMIN_CLAIM: z
    .string()
    .trim()
    .refine((text) => claimRuleOf(text) !== undefined, 'must be PATH=VALUE')
    .optional()
    .describe(
      'The claim that makes someone an administrator, for example groups=tally-admins: it has this value, or is a list that contains it.',
    ),
  TALLY_OIDC_ADMIN_EMAILS: listOf(
    (text) => /^[\x21-\x7e]+@[A-Za-z0-9.-]+$/.test(text),
    'must be e-mail addresses, separated by commas',
  ).describe('The verified e-mail addresses of administrators, separated by commas. Appoint others with `tally admin appoint EMAIL`.'),
  TALLY_OIDC_GROUPS_CLAIM: z
    .string()
    .trim()
    .min(1)
    .default('groups')
    .describe("The claim that holds a person's groups, for grants to group:. It is a text or a list of texts; dots lead into objects."),
  TALLY_READERS: z
    .enum(['granted', 'everyone'], 'must be granted or everyone')
    .default('granted')
    .describe(
      'Who may read the index when people log in. granted: users read what is granted, and administrators read everything. everyone: every user reads every bucket. Without TALLY_OIDC_ISSUER, every caller on this machine reads everything.',
    ),
  TALLY_SESSION_DAYS: integer(1, 90, 7).describe(
    'How long a login of the command line or the Python SDK lasts, in days. With the default of 7 days, people log in once a week. A smaller value also applies to existing sessions; a larger one applies from the next login. Browser sessions last 12 hours.',
  ),
  TALLY_PUBLIC_URL: originUrl
    .optional()
    .describe(
      'The address at which browsers and programs reach the control plane, for example https://tally.example.com. It must be https, except on loopback. Required unless TALLY_HTTP_ADDRESS is on loopback, because Tally trusts no request header about it.',
    ),
  TALLY_CATALOG_URL: originUrl
    .optional()
    .describe(
      "The catalog's address in /config.json for clients. By default, this is the control plane's address. A catalog elsewhere must serve a copy of the control plane's /config.json.",
    ),
  TALLY_TRUSTED_PROXIES: listOf(isCidr, 'must be addresses with a prefix length, such as 10.20.30.4/32 or 10.20.30.0/28')
    .refine(
      (cidrs) => !cidrs.some((text) => isCidr(text) && isTooWide(text)),
      'must name only the reverse proxies, IPv4 with a prefix of at least /13 and IPv6 of at least /29: a caller with an address in such a range could claim any address',
    )
    .describe(
      "The reverse proxies in front of the control plane, as CIDRs separated by commas, such as 10.20.30.4/32. They terminate TLS, and Tally trusts their X-Forwarded-For: the right-most address in it that is not a proxy's is the caller. No caller may have an address in these ranges, because it could claim any address; Tally refuses ranges wider than /13 (IPv6: /29), which no proxies need. Required unless TALLY_HTTP_ADDRESS is on loopback.",
    ),
  TALLY_AUDIT_RETENTION_DAYS: integer(1, 36_500, 400).describe(
    'How long to keep audit records, in days. The default of 400 days covers a year and the time to review it. OpenSearch deletes whole months, so records there live up to 31 days longer.',
  ),
};

/** The settings whose values are never shown. */
export const secretSettings: ReadonlySet<string> = new Set(['TALLY_OIDC_CLIENT_SECRET']);

type IdentitySettings = z.output<z.ZodObject<typeof identitySettings>>;

/** The settings that mean nothing without an issuer. Each of them set alone is a mistake: its author expects that people must log in. */
const withIssuer = [
  'TALLY_OIDC_CLIENT_ID',
  'TALLY_OIDC_CLIENT_SECRET',
  'TALLY_OIDC_ALLOWED',
  'TALLY_OIDC_TRUST_EMAIL',
  'TALLY_OIDC_ADMIN_CLAIM',
  'TALLY_OIDC_ADMIN_EMAILS',
] as const satisfies readonly (keyof IdentitySettings)[];

/** The mistakes in how the settings of identity are combined. */
export function identityMistakes(settings: IdentitySettings): readonly string[] {
  const { TALLY_OIDC_ISSUER: issuer, TALLY_OIDC_ALLOWED: allowed } = settings;
  if (issuer === undefined) {
    return withIssuer.filter((name) => isSet(settings[name])).map((name) => `${name}: needs TALLY_OIDC_ISSUER, which is not set`);
  }
  const isPublic = isPublicIssuer(issuer);
  return brokenOf(
    [settings.TALLY_OIDC_CLIENT_ID === undefined, "TALLY_OIDC_CLIENT_ID: must be set to this registry's client ID at TALLY_OIDC_ISSUER"],
    [
      allowed.length === 0,
      'TALLY_OIDC_ALLOWED: must say who may log in: domain=example.com, claim:groups=tally-users, or any for everyone the issuer knows',
    ],
    [
      allowed.includes('any') && isPublic,
      'TALLY_OIDC_ALLOWED: must not be any, because anyone can create an account at this issuer: name a domain or a claim',
    ],
    [
      settings.TALLY_OIDC_TRUST_EMAIL && isPublic,
      'TALLY_OIDC_TRUST_EMAIL: must be false, because people choose their own addresses at this issuer',
    ],
  );
}

function isSet(value: IdentitySettings[keyof IdentitySettings]): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
}

/** The rules of login that the settings state; they passed {@link identityMistakes}. */
export function loginRulesOf(settings: IdentitySettings): LoginRules {
  const { TALLY_OIDC_ALLOWED: allowed, TALLY_OIDC_ADMIN_CLAIM: claim, TALLY_OIDC_ADMIN_EMAILS: emails } = settings;
  return {
    issuer: settings.TALLY_OIDC_ISSUER,
    trustsEmail: settings.TALLY_OIDC_TRUST_EMAIL,
    allowed: allowed.flatMap((text) => allowedRuleOf(text) ?? []),
    adminClaim: claim === undefined ? undefined : claimRuleOf(claim),
    groupsClaim: settings.TALLY_OIDC_GROUPS_CLAIM,
    adminEmails: emails.map((email) => email.toLowerCase()),
  };
}

function isIssuer(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== '' || password !== '' || /[?#]/.test(text)) return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** The shortest prefixes of trusted proxies: as wide as the widest ranges that a content delivery network publishes as its own. */
const PREFIX_MIN = { ipv4: 13, ipv6: 29 } as const;

/** Whether a CIDR contains more than proxies. IPv4 addresses inside IPv6 ranges are refused, because such a range hides how many it contains. */
function isTooWide(text: string): boolean {
  const [address = '', length = ''] = text.split('/');
  if (isIP(address) === 4) return Number(length) < PREFIX_MIN.ipv4;
  const range = new BlockList();
  range.addSubnet(address, Number(length), 'ipv6');
  const isMapped = new URL(`http://[${address}]`).hostname.startsWith('[::ffff:') || range.check('::ffff:192.0.2.1', 'ipv6');
  return isMapped || Number(length) < PREFIX_MIN.ipv6;
}

function isCidr(text: string): boolean {
  const [, address = '', length = ''] = /^([0-9a-fA-F:.]+)\/(\d{1,3})$/.exec(text) ?? [];
  const version = isIP(address);
  return version !== 0 && Number(length) <= (version === 4 ? 32 : 128);
}
