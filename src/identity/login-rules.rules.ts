/** Who may log in, and with which role: the rules in the settings, applied to an issuer's claims. */
import type { Role } from '../base/actor.ts';
import { claimHas, type Claims, type Identity } from './claims.rules.ts';
import type { RoleSource, UserRecord } from './user.rules.ts';

/** Issuers at which anyone can create an account, so that having one says nothing about who may use this registry. */

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

/** Microsoft's addresses for all organisations' accounts, and the tenant of private accounts. */
const OF_MANY_TENANTS = /^\/(?:common|organizations|consumers|9188040d-6c67-4c5b-b112-36a304b66dad)(?:\/|$)/i;
const MICROSOFT: ReadonlySet<string> = new Set(['login.microsoftonline.com', 'login.microsoft.com', 'sts.windows.net']);

/** Whether two addresses name the same issuer. They are compared as URLs, because a trailing slash makes no difference. */
function isSameIssuer(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => text.replace(/\/\.well-known\/openid-configuration$/, ''));
  return a === b || (URL.canParse(a ?? '') && URL.canParse(b ?? '') && new URL(a ?? '').href === new URL(b ?? '').href);
}

/** Whether an issuer is known to serve many organisations, or anyone. */
export function isPublicIssuer(issuer: string): boolean {
  const { hostname, pathname } = new URL(issuer);
  return HOSTS.has(hostname) || (MICROSOFT.has(hostname) && OF_MANY_TENANTS.test(pathname));
}

/** A claim at a path must have a value. */
interface ClaimRule {
  readonly kind: 'claim';
  /** As written in the settings. */
  readonly text: string;
  readonly path: string;
  readonly value: string;
}

/** Who may log in. `domain`: people with a verified e-mail address of this domain. */
type AllowedRule = { readonly kind: 'any' } | { readonly kind: 'domain'; readonly domain: string } | ClaimRule;

export interface LoginRules {
  /** One of them must apply. */
  readonly allowed: readonly AllowedRule[];
  /** The issuer at which people log in. Users of other issuers have no rights. Default: every user's issuer. */
  readonly issuer?: string | undefined;
  /** Whether an address counts as verified if the issuer doesn't say. Default: false. */
  readonly trustsEmail?: boolean;
  /** Makes an administrator. */
  readonly adminClaim?: ClaimRule | undefined;
  /** The claim that states groups. Default: groups. */
  readonly groupsClaim?: string | undefined;
  /** Verified addresses, in lower case, of administrators. */
  readonly adminEmails: readonly string[];
}

/** What the rules apply to after the login: the claims themselves are not stored. */
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

/** The claim rules that these claims satisfy, as written in the settings. */
export function matchedRules({ allowed, adminClaim }: LoginRules, claims: Claims): readonly string[] {
  const rules = [...allowed, ...(adminClaim === undefined ? [] : [adminClaim])];
  const matched = rules.flatMap((rule) => (rule.kind === 'claim' && claimHas(claims, rule.path, rule.value) ? [rule.text] : []));
  return [...new Set(matched)];
}

/** Why a user may not log in or keep a session; undefined: the user may. Does not reveal the rules, which are for administrators. */
export function notAllowedReason({ allowed }: Pick<LoginRules, 'allowed'>, user: RuledUser): string | undefined {
  if (user.emailDenied === true) return 'the issuer says that this address is not verified';
  return allowed.some((rule) => applies(rule, user)) ? undefined : 'no rule of TALLY_OIDC_ALLOWED applies';
}

/** Whether a user belongs to the issuer at which people log in. */
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

/** A user's role, and why. A role by appointment stays whatever the rules say. */
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
  /** Whether the user is enabled and let in, so that the user's sessions and API keys are accepted. */
  readonly isAllowed: boolean;
}

/**
 * Applies the rules to a stored user and to what the last login's claims satisfied. It runs for each request, so that what the settings
 * give and take away counts at once, for sessions and API keys alike.
 */
export function knownUserOf(rules: LoginRules, stored: UserRecord): KnownUser {
  const isEnabled = stored.disabledAtMs === undefined;
  // a process without identity settings knows no rules: it authenticates nobody, and shows users as stored
  if (rules.allowed.length === 0) return { ...stored, isAllowed: isEnabled };
  const isVerified = stored.emailVerified && (stored.emailTrusted !== true || rules.trustsEmail === true);
  const user = { ...stored, emailVerified: isVerified };
  const isAllowed = isEnabled && notAllowedReason(rules, user) === undefined;
  return { ...user, ...roleOf(rules, user, user.roleSource === 'appointment'), isAllowed };
}

/** What a person who is refused sees. */
export function refusedText({ email, emailVerified }: Pick<Identity, 'email' | 'emailVerified'>, reason: string): string {
  return `${email}${emailVerified ? '' : ' (not verified)'} may not log in here: ${reason}. Ask an administrator of this registry`;
}
