/** Identity's stored records: users, API keys, logins, sessions, and who may read what. */
import { policySchema } from './grants/policy.rules.ts';
import { keyRecordSchema, userKeysSchema } from './api-key.rules.ts';
import { loginKeySchema, loginRecordSchema } from './login.rules.ts';
import { sessionRecordSchema } from './session.rules.ts';
import { appointmentSchema, userRecordSchema } from './user.rules.ts';

/** The reference to a record of each kind. */
export const refs = {
  user: (userId: string) => ({ id: `user:${userId}`, kind: 'user', schema: userRecordSchema }) as const,
  apiKey: (keyId: string) => ({ id: `api-key:${keyId}`, kind: 'api-key', schema: keyRecordSchema }) as const,
  userKeys: (userId: string) => ({ id: `user-keys:${userId}`, kind: 'user-keys', schema: userKeysSchema }) as const,
  /** By the hashed name of the grantee. */
  appointment: (name: string) => ({ id: `appointment:${name}`, kind: 'appointment', schema: appointmentSchema }) as const,
  login: (id: string) => ({ id: `login:${id}`, kind: 'login', schema: loginRecordSchema }) as const,
  loginKey: { id: 'login-key', kind: 'login-key', schema: loginKeySchema } as const,
  session: (id: string) => ({ id: `session:${id}`, kind: 'session', schema: sessionRecordSchema }) as const,
  access: { id: 'access', kind: 'access', schema: policySchema } as const,
};
