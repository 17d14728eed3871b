import { withoutSecrets } from './secrets.ts';

/** The error codes of requests to the control plane (HTTP or command line), each with its HTTP status. */
export const requestErrors = {
  /** The request has a parameter, field or format that the operation does not accept. */
  'request.invalid': 400,
  /** Nothing is at this address. */
  'request.not-found': 404,
  /** The address exists, but not with this method. */
  'request.method-not-allowed': 405,
  /** The request came from another origin's page, or lacks the proof that the panel sent it. */
  'request.forbidden-origin': 403,
  /** A proxy forwarded the request to a control plane that serves only its own machine. */
  'request.forwarded': 403,
  /** The operation does not accept the body's media type. */
  'request.unsupported-media-type': 415,
  /** The body is too large. */
  'request.too-large': 413,
  /** The registry is answering as many requests of this kind as it can. */
  'request.overloaded': 503,
  /** One API key sent more than 100 requests in a second. Retry-After says when to try again. */
  'request.rate-limited': 429,
  /** The request has no valid session or API key. A registry without an issuer cannot check credentials and refuses any that are sent: send none there. */
  'authentication.failed': 401,
  /** The caller may not do this. */
  'authorization.denied': 403,
  /** An API key may not do this; only a person's session may. */
  'session.required': 403,
  /** This registry has no issuer for logins. */
  'login.not-configured': 404,
  /** The login was not completed in time. */
  'login.expired': 400,
  /** The person may not log in: the registry's settings do not allow it, or an administrator disabled the user. */
  'login.refused': 403,
  /** The login's code was already used, has expired, or belongs to another login. */
  'login.invalid-grant': 400,
  /** No user has this ID. */
  'user.not-found': 404,
  /** No such grant exists. */
  'grant.not-found': 404,
  /** The registry already has as many grants as it can keep. */
  'grant.limit': 409,
  /** The user is the last administrator who can log in. */
  'user.last-administrator': 409,
  /** A setting makes the user an administrator, so no request can take the role away. */
  'user.role-by-rule': 409,
  /** No API key has this ID. */
  'api-key.not-found': 404,
  /** The owner already has the maximum number of API keys. */
  'api-key.limit': 409,
  /** The bucket is not connected, or the caller may not see it. */
  'bucket.not-connected': 404,
  /** The caller can read no such object. */
  'object.not-found': 404,
  /** No re-index job has this ID. */
  'job.not-found': 404,
  /** Another re-index of the bucket has not ended. */
  'job.conflict': 409,
  /** The job has ended. */
  'job.not-cancellable': 409,
  /** The job cannot be paused in its current state. */
  'job.not-pausable': 409,
  /** The job is not paused. */
  'job.not-resumable': 409,
  /** The job holds no deletions for a person to decide. */
  'job.nothing-waits': 409,
  /** With this source, Tally does not write the bucket's notification, so there is nothing to repair. */
  'job.repair-refused': 409,
  /** The registry already has as many open re-index jobs as it can keep. */
  'job.limit': 409,
  /** No dead letter has this ID, or it is no longer in its queue. */
  'dead-letter.not-found': 404,
  /** The registry knows no dead-letter queue. */
  'dead-letter.no-queue': 409,
  /** The embedded mode has no AWS account to connect buckets from. */
  'connect.embedded': 409,
  /** The bucket queue does not exist. */
  'connect.queue-missing': 409,
  /** AWS does not permit a request that the connection needs. */
  'connect.denied': 409,
  /** Another notification already receives the same events, and S3 permits only one. */
  'connect.overlap': 409,
  /** The bucket's notification has a part that this version does not know; writing the notification could remove it. */
  'connect.unknown-configuration': 409,
  /** S3 cannot reach a destination of the bucket's notification. */
  'connect.destination': 409,
  /** Something about the bucket, its connection or AWS prevents this. */
  'connect.blocked': 409,
  /** The change touches other owners' resources, so a person must review the plan first. */
  'connect.plan-needed': 409,
  /** AWS has changed since the plan was made. */
  'connect.plan-outdated': 409,
  /** Another program changed the same AWS document at the same moment. */
  'connect.changed-meanwhile': 409,
  /** Another change to connections is running. */
  'connect.busy': 409,
  /** The bucket's notification is paused. */
  'connect.paused': 409,
  /** The bucket's connection is being removed. */
  'connect.removing': 409,
  /** Another request changed the record at the same moment. */
  'state.conflict': 409,
  /** The search would read more than one request may. */
  'search.too-wide': 503,
  /** This installation has neither a built panel nor the tools to build it. */
  'panel.not-built': 503,
  /** The request took too long. */
  'request.timeout': 503,
  /** The process stopped before it had answered. */
  'request.interrupted': 503,
} as const;

export type RequestErrorCode = keyof typeof requestErrors;

/** Whether a text is a code of this catalogue. */
export function isRequestErrorCode(code: string): code is RequestErrorCode {
  return Object.hasOwn(requestErrors, code);
}

/** The error of a refused request. `detail` states what happened, to which thing, and what to do; API keys and tokens in it are masked. `extra` is added to the problem document (for `job.conflict`: job_id). */
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
