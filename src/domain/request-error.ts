import { withoutSecrets } from './masked-secrets.ts';

/** The error codes of requests to the control plane (HTTP or command line), each with its HTTP status. */
export const requestErrors = {
  'request.invalid': 400,
  'request.not-found': 404,
  'request.method-not-allowed': 405,
  'request.forbidden-origin': 403,
  'request.forwarded': 403,
  'request.unsupported-media-type': 415,
  'request.too-large': 413,
  'request.too-many-streams': 429,
  'request.overloaded': 503,
  'request.rate-limited': 429,
  'authentication.failed': 401,
  'authorization.denied': 403,
  'session.required': 403,
  'login.not-configured': 404,
  'login.expired': 400,
  'login.refused': 403,
  'login.invalid-grant': 400,
  'user.not-found': 404,
  'grant.not-found': 404,
  'grant.limit': 409,
  'grant.of-file': 409,
  'appointment.not-found': 404,
  'user.last-administrator': 409,
  'api-key.not-found': 404,
  'api-key.limit': 409,
  'bucket.not-connected': 404,
  'object.not-found': 404,
  'bucket.limit': 409,
  'bucket.already-connected': 409,
  'job.not-found': 404,
  'job.conflict': 409,
  'job.not-cancellable': 409,
  'job.not-pausable': 409,
  'job.not-resumable': 409,
  'job.repair-refused': 409,
  'job.limit': 409,
  'dead-letter.not-found': 404,
  'dead-letter.no-queue': 409,
  'connect.embedded': 409,
  'connect.no-queue': 409,
  'connect.queue-missing': 409,
  'connect.denied': 409,
  'connect.overlap': 409,
  'connect.unknown-configuration': 409,
  'connect.destination': 409,
  'connect.blocked': 409,
  'connect.plan-needed': 409,
  'connect.plan-outdated': 409,
  'connect.changed-meanwhile': 409,
  'connect.busy': 409,
  'connect.paused': 409,
  'connect.not-paused': 409,
  'connect.not-applied': 409,
  'connect.removing': 409,
  'state.conflict': 409,
  'search.too-wide': 503,
  'panel.not-built': 503,
  'request.timeout': 503,
  'request.interrupted': 503,
} as const;

export type RequestErrorCode = keyof typeof requestErrors;

/** Whether a text is a code of this catalogue. */
export function isRequestErrorCode(code: string): code is RequestErrorCode {
  return Object.hasOwn(requestErrors, code);
}

/** A request was refused. `detail` states what happened, to which thing, and what to do; an API key or a token in it is masked. `extra` is added to the problem document (for `job.conflict`: job_id). */
export class RequestError extends Error {
  readonly code: RequestErrorCode;
  readonly extra: Readonly<Record<string, string | number>>;

  constructor(code: RequestErrorCode, detail: string, extra: Readonly<Record<string, string | number>> = {}) {
    super(withoutSecrets(detail));
    this.name = 'RequestError';
    this.code = code;
    this.extra = extra;
  }
}
