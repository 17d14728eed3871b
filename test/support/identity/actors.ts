/** Actors of tests. */
import type { Actor } from '../../../src/domain/identity/actor.ts';

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
