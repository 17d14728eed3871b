/** The actor: who requests an action. Every operation of the control plane receives one. */

/** A program on this machine, which is not authenticated. */
interface LocalActor {
  readonly kind: 'local';
  /** The user of the operating system; absent if it is not known, as for requests over HTTP. */
  readonly user?: string;
  /** Set for a caller of the Unix socket: the mode of its file is the login. */
  readonly isOperator?: true;
  /** The name of the machine. */
  readonly host: string;
}

/** What a user may do: `admin` includes `user`. */
export const roles = ['user', 'admin'] as const;
export type Role = (typeof roles)[number];

/** What an API key may do, never more than its owner's role. */
export const keyScopes = ['read', 'operate', 'admin'] as const;
export type KeyScope = (typeof keyScopes)[number];

/** A person who has logged in. */
export interface SessionActor {
  readonly kind: 'session';
  readonly userId: string;
  readonly email: string;
  /** Set if the issuer has not verified the address: it may be another person's. */
  readonly isUnverified?: true;
  readonly role: Role;
  /** The groups that count now. */
  readonly groups?: readonly string[];
  readonly sessionId: string;
}

/** A program with an API key of a user. */
export interface KeyActor {
  readonly kind: 'api_key';
  /** The user whose key it is. */
  readonly userId: string;
  readonly email: string;
  /** As for a session. */
  readonly isUnverified?: true;
  readonly role: Role;
  readonly keyId: string;
  readonly keyName: string;
  readonly keyFingerprint: string;
  /** What the key may do now: the scopes that it was created with, as far as its owner's role permits them. */
  readonly scopes: readonly KeyScope[];
  /** The groups of the owner that count now. */
  readonly groups?: readonly string[];
  /** When the key ends; set from 14 days before. */
  readonly endsSoonAtMs?: number;
}

/** `address`: where the request came from; absent for the operator. */
export type Actor = (LocalActor | SessionActor | KeyActor) & { readonly address?: string };

/** Returns the actor's name for stored records and the audit: an e-mail address, marked if it is not verified; or user@host for a program on this machine. */
export function nameOfActor(actor: Actor): string {
  switch (actor.kind) {
    case 'local':
      return `${actor.isOperator === true ? 'operator' : (actor.user ?? 'anonymous')}@${actor.host}`;
    case 'session':
    case 'api_key':
      return actor.isUnverified === true ? `${actor.email} (not verified)` : actor.email;
  }
}
