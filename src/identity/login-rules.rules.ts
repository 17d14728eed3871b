/** Who may log in, and with which role: the rules in the settings, applied to an issuer's claims. */
import type { Role } from '../base/actor.ts';
import { claimHas, type Claims, type Identity } from './claims.rules.ts';
import type { RoleSource, UserRecord } from './user.rules.ts';

/** Issuers at which anyone can have an account, so that an account there says nothing about who may use this registry. */

const HOSTS: ReadonlySet<string> = new Set([
  'accounts.google.com',
  'appleid.apple.com',
  'account.apple.com',
  'gitlab.com',
  'login.yahoo.com',
  'www.facebook.com',
  'www.linkedin.com',
  'www.paypal.com',
  'access.line.me',
  'id.twitch.tv',
  'slack.com',
  'login.salesforce.com',
  'oauth.id.jumpcloud.com',
  'token.actions.githubusercontent.com',
]);

/** Microsoft's addresses for accounts of all organisations, and the tenant of private accounts. */
const OF_MANY_TENANTS = /^\/(?:common|organizations|consumers|9188040d-6c67-4c5b-b112-36a304b66dad)(?:\/|$)/i;
const MICROSOFT: ReadonlySet<string> = new Set(['login.microsoftonline.com', 'login.microsoft.com', 'sts.windows.net']);

/** Whether two addresses are that of one issuer. They are compared as URLs, because `https://id.example.com` and the same with a slash are one. */
function isSameIssuer(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => text.replace(/\/\.well-known\/openid-configuration$/, ''));
  return a === b || (URL.canParse(a ?? '') && URL.canParse(b ?? '') && new URL(a ?? '').href === new URL(b ?? '').href);
}

/** Whether an issuer is known to have accounts of many organisations or of anyone. */
export function isPublicIssuer(issuer: string): boolean {
  const { hostname, pathname } = new URL(issuer);
  return HOSTS.has(hostname) || (MICROSOFT.has(hostname) && OF_MANY_TENANTS.test(pathname));
}

/** A claim at a path must have a value. */
interface ClaimRule {
  readonly kind: 'claim';
  /** As the settings write it. */
  readonly text: string;
  readonly path: string;
  readonly value: string;
}

/** Who may log in. `domain`: whose verified e-mail address has this domain. */
type AllowedRule = { readonly kind: 'any' } | { readonly kind: 'domain'; readonly domain: string } | ClaimRule;

export interface LoginRules {
  /** One of them must apply. */
  readonly allowed: readonly AllowedRule[];
  /** The issuer at which people log in. Users of another one have no rights. Default: that of every user. */
  readonly issuer?: string | undefined;
  /** Whether an address counts as verified of which the issuer says nothing. Default: false. */
  readonly trustsEmail?: boolean;
  /** Makes an administrator. */
  readonly adminClaim?: ClaimRule | undefined;
  /** The claim that states groups. Default: groups. */
  readonly groupsClaim?: string | undefined;
  /** Verified addresses, in lower case, of administrators. */
  readonly adminEmails: readonly string[];
}

/** What the rules are applied to after the login: the claims themselves are not stored. */
type RuledUser = Pick<UserRecord, 'email' | 'emailVerified' | 'matched'> & Pick<Identity, 'emailDenied'>;

const DOMAIN = /^(?=.{1,253}$)[a-z0-9-]+(\.[a-z0-9-]+)+$/;
/** A path and a value. The value may contain =. */
const CLAIM = /^([^=\s][^=]*)=(.+)$/;

/** Parses one rule of TALLY_OIDC_ALLOWED; undefined if it is not one. */
export function allowedRuleOf(text: string): AllowedRule | undefined {
  if (text === 'any') return { kind: 'any' };
  if (text.startsWith('domain=')) {
    const domain = text.slice('domain='.length).toLowerCase();
    return DOMAIN.test(domain) ? { kind: 'domain', domain } : undefined;
  }
  return text.startsWith('claim:') ? claimRuleOf(text.slice('claim:'.length)) : undefined;
}

/** Parses `path=value`; undefined if it is not one. */
export function claimRuleOf(text: string): ClaimRule | undefined {
  const [, path, value] = CLAIM.exec(text) ?? [];
  return path === undefined || value === undefined ? undefined : { kind: 'claim', text, path, value };
}

/** The rules on claims that these claims satisfy, as the settings write them. */
export function matchedRules({ allowed, adminClaim }: LoginRules, claims: Claims): readonly string[] {
  const rules = [...allowed, ...(adminClaim === undefined ? [] : [adminClaim])];
  const matched = rules.flatMap((rule) => (rule.kind === 'claim' && claimHas(claims, rule.path, rule.value) ? [rule.text] : []));
  return [...new Set(matched)];
}

/** Why a user may not log in, and not keep a session; undefined: the user may. It does not show the rules, which are for administrators. */
export function notAllowedReason({ allowed }: Pick<LoginRules, 'allowed'>, user: RuledUser): string | undefined {
  if (user.emailDenied === true) return 'the issuer says that this address is not verified';
  return allowed.some((rule) => applies(rule, user)) ? undefined : 'no rule of TALLY_OIDC_ALLOWED applies';
}

/** Whether a user is one of the issuer at which people log in. */
export function isOfIssuer({ issuer }: Pick<LoginRules, 'issuer'>, user: Pick<UserRecord, 'issuer' | 'issuerSetting'>): boolean {
  return issuer === undefined || user.issuerSetting === issuer || isSameIssuer(issuer, user.issuer);
}

function applies(rule: AllowedRule, user: RuledUser): boolean {
  switch (rule.kind) {
    case 'any':
      return true;
    case 'domain':
      return user.emailVerified && user.email.toLowerCase().endsWith(`@${rule.domain}`);
    case 'claim':
      return user.matched.includes(rule.text);
  }
}

/** The role of a user, and why. A role by appointment stays whatever the rules say. */
export function roleOf(
  { adminClaim, adminEmails }: Pick<LoginRules, 'adminClaim' | 'adminEmails'>,
  user: RuledUser,
  isAppointed: boolean,
): { readonly role: Role; readonly roleSource: RoleSource } {
  if (isAppointed) return { role: 'admin', roleSource: 'appointment' };
  const isByEmail = user.emailVerified && adminEmails.includes(user.email.toLowerCase());
  const isByClaim = adminClaim !== undefined && user.matched.includes(adminClaim.text);
  return isByEmail || isByClaim ? { role: 'admin', roleSource: 'rule' } : { role: 'user', roleSource: 'none' };
}

/** A user as the settings see it now. */
export interface KnownUser extends UserRecord {
  /** Whether the user is enabled and let in, so that sessions and API keys of the user are accepted. */
  readonly isAllowed: boolean;
}

/**
 * Applies the rules to a stored user and to what the claims of the last login satisfied. It is done for each request, so that
 * what the settings give and take away counts at once, for sessions and API keys alike.
 */
export function knownUserOf(rules: LoginRules, stored: UserRecord): KnownUser {
  const isEnabled = stored.disabledAtMs === undefined;
  // without the settings of identity no rule is known: such a process authenticates no one, and shows users as they are stored
  if (rules.allowed.length === 0) return { ...stored, isAllowed: isEnabled };
  const isVerified = stored.emailVerified && (stored.emailTrusted !== true || rules.trustsEmail === true);
  const user = { ...stored, emailVerified: isVerified };
  const isAllowed = isEnabled && notAllowedReason(rules, user) === undefined;
  return { ...user, ...roleOf(rules, user, user.roleSource === 'appointment'), isAllowed };
}

/** What a refused person sees. */
export function refusedText({ email, emailVerified }: Pick<Identity, 'email' | 'emailVerified'>, reason: string): string {
  return `${email}${emailVerified ? '' : ' (not verified)'} may not log in here: ${reason}. Ask an administrator of this registry`;
}
