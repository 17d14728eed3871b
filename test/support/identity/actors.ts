/** Actors of tests. */
import type { Actor } from '../../../src/base/actor.ts';
import type { UserRecord } from '../../../src/identity/user.rules.ts';

type SessionActor = Extract<Actor, { kind: 'session' }>;
type KeyActor = Extract<Actor, { kind: 'api_key' }>;

export const localActor: Actor = { kind: 'local', user: 'alice', host: 'build-1', address: '127.0.0.1' };

export function sessionActor(more: Partial<SessionActor> = {}): SessionActor {
  return { kind: 'session', userId: 'u-bob', email: 'bob@example.com', role: 'user', sessionId: 's-bob', ...more };
}

export function keyActor(more: Partial<KeyActor> = {}): KeyActor {
  return {
    kind: 'api_key',
    userId: 'u-bob',
    email: 'bob@example.com',
    role: 'user',
    keyId: 'k-bob',
    keyName: 'ci 2026',
    keyFingerprint: 'qk_abcd…wxyz',
    scopes: ['read'],
    ...more,
  };
}

export function userRecord(more: Partial<UserRecord> = {}): UserRecord {
  return {
    userId: '0aB1cD2eF3gH4iJ5kL6mN7',
    issuer: 'https://id.example.com',
    subject: 's-bob',
    email: 'bob@example.com',
    emailVerified: true,
    role: 'user',
    roleSource: 'none',
    matched: [],
    createdAtMs: 0,
    lastLoginAtMs: 0,
    ...more,
  };
}
