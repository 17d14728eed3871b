/** An ID token's claims: what an issuer says about a person. They are input and may have any form. */
import { isGroup } from './grants/grant.rules.ts';
import { hasSecret, withoutSecrets } from '../base/masked-secrets.ts';
import { printable } from '../base/printable.ts';

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
