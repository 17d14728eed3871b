/** An ID token's claims: what an issuer says about a person. They are input and may have any form. The settings' rules then say who may log in, and with which role. */
import { isGroup } from './grants/grant.rules.ts';
import { hasSecret, withoutSecrets } from '../base/secrets.ts';
import { printable } from '../base/texts.ts';
import type { Role } from '../base/actor.ts';
import type { RoleSource, UserRecord } from './user.rules.ts';

export type Claims = Readonly<Record<string, unknown>>;

/** Who logged in, according to the claims. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string;
  readonly emailVerified: boolean;
  /** Set if the issuer says that the address is not verified, as opposed to not saying. */
  readonly emailDenied?: true | undefined;
  /** Set if the issuer doesn't say, and the address counts as verified only because of TALLY_OIDC_TRUST_EMAIL. */
  readonly emailTrusted?: true | undefined;
}

/** The longest address that mail can have (RFC 5321). */
const EMAIL_LENGTH_MAX = 254;
/** One @ with printable ASCII around it. Other characters are refused, because some of them become ASCII in lower case (the Kelvin sign becomes k). */
const EMAIL = /^[\x21-\x3f\x41-\x7e]+@[A-Za-z0-9.-]+$/;
/** OpenID Connect's longest subject. */
const SUBJECT_LENGTH_MAX = 255;

/**
 * Who logged in. An address counts as verified if the issuer says so (`email_verified` true, or the text "true", which some issuers send)
 * or, with `trustEmail`, if it doesn't say. Anything else denies it. Without a usable address, it is `sub@issuer-host`, unverified,
 * whatever the issuer says about an address.
 */
export function identityOf(claims: Claims, { issuer, trustEmail }: { readonly issuer: string; readonly trustEmail: boolean }): Identity {
  const subject = textAt(claims, 'sub') ?? '';
  const email = textAt(claims, 'email');
  if (email === undefined || email.length > EMAIL_LENGTH_MAX || !EMAIL.test(email) || hasSecret(email)) {
    return {
      issuer,
      subject,
      email: `${printable(withoutSecrets(subject), SUBJECT_LENGTH_MAX)}@${new URL(issuer).host}`,
      emailVerified: false,
      emailDenied: undefined,
      emailTrusted: undefined,
    };
  }
  return { issuer, subject, email: email.toLowerCase(), ...verificationOf(own(claims, 'email_verified'), trustEmail) };
}

function verificationOf(stated: unknown, trustEmail: boolean): Pick<Identity, 'emailVerified' | 'emailDenied' | 'emailTrusted'> {
  const isTrusted = stated === undefined && trustEmail;
  const isVerified = stated === true || stated === 'true' || isTrusted;
  const isDenied = !isVerified && stated !== undefined && stated !== null;
  return { emailVerified: isVerified, emailDenied: isDenied ? true : undefined, emailTrusted: isTrusted ? true : undefined };
}

/**
 * Whether the claim at a path has a value: is this text, number or truth value, or is a list that contains it. A claim whose
 * name is the whole path comes first, because names may contain dots (`https://example.com/groups`); otherwise the dots lead
 * into objects.
 */
export function claimHas(claims: Claims, path: string, value: string): boolean {
  const found = own(claims, path) ?? claimAt(claims, path.split('.'));
  return Array.isArray(found) ? found.some((each) => isText(each, value)) : isText(found, value);
}

/** The most groups to keep, more than any person needs. Entra sends at most 200, others send all. */
const GROUPS_MAX = 1_000;

/** The groups in the claims. */
interface StatedGroups {
  /** The first 1,000 groups with at most 256 characters, which are those that grants can name. */
  readonly groups: readonly string[];
  /** Set if the issuer sent a link because there are too many groups (OpenID Connect Core, 5.6.2), or if some were left out. */
  readonly groupsLeftOut?: true;
}

/** The groups in the claim at a path, which is a text or a list of texts. */
export function groupsOf(claims: Claims, path: string): StatedGroups {
  const found = own(claims, path) ?? claimAt(claims, path.split('.'));
  const texts = new Set([found].flat().filter((each): each is string => typeof each === 'string' && each !== ''));
  const groups = [...texts].filter(isGroup).slice(0, GROUPS_MAX);
  const links = own(claims, '_claim_names');
  const isLinked = found === undefined && typeof links === 'object' && links !== null && own(links, path) !== undefined;
  return { groups, ...((isLinked || groups.length < texts.size) && { groupsLeftOut: true }) };
}

function claimAt(claims: Claims, names: readonly string[]): unknown {
  let value: unknown = claims;
  for (const name of names) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    value = own(value, name);
  }
  return value;
}

/** Own fields only: a claim is never a method of objects. */
function own(object: object, name: string): unknown {
  return Object.hasOwn(object, name) ? new Map<string, unknown>(Object.entries(object)).get(name) : undefined;
}

function textAt(claims: Claims, name: string): string | undefined {
  const value = own(claims, name);
  return typeof value === 'string' ? value : undefined;
}

function isText(found: unknown, value: string): boolean {
  return ['string', 'number', 'boolean'].includes(typeof found) && String(found) === value;
}

// ── who may log in, and with which role ────────────────────────────────────────────────────────────────────────────

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
 * Applies the rules to a stored user and to what the last login's claims satisfied. It runs for each request, so that a change of
 * the settings takes effect at once, for sessions and API keys alike.
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
