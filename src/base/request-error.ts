import { withoutSecrets } from './masked-secrets.ts';

/** The error codes of requests to the control plane (HTTP or command line), each with its HTTP status. */
export const requestErrors = {
  /** The request has a parameter, a field or a form that the operation does not take. */
  'request.invalid': 400,
  /** Nothing is at this address. */
  'request.not-found': 404,
  /** The address exists, with another method. */
  'request.method-not-allowed': 405,
  /** A page of another origin sent the request, or it lacks what proves that the panel sent it. */
  'request.forbidden-origin': 403,
  /** A proxy forwarded the request to a control plane that serves only its own machine. */
  'request.forwarded': 403,
  /** The body has another media type than the operation takes. */
  'request.unsupported-media-type': 415,
  /** The body or the headers are larger than permitted. */
  'request.too-large': 413,
  /** The caller follows as many jobs as one caller may follow at once. */
  /** The registry answers as many requests of this kind as it can at once. */
  'request.overloaded': 503,
  /** More than 100 requests in a second came with one API key. Retry-After says when to try again. */
  'request.rate-limited': 429,
  /** The request has no valid session or API key. A registry without an issuer can check none, and refuses every one that is sent: send none there. */
  'authentication.failed': 401,
  /** The caller is known and may not do this. */
  'authorization.denied': 403,
  /** An API key may not do this: it takes the session of a person. */
  'session.required': 403,
  /** This registry has no issuer at which people log in. */
  'login.not-configured': 404,
  /** The login was not completed in time. */
  'login.expired': 400,
  /** The person may not log in: the settings of the registry do not let it in, or an administrator disabled it. */
  'login.refused': 403,
  /** The code of the login was used, has ended, or belongs to another login. */
  'login.invalid-grant': 400,
  /** No user has this id. */
  'user.not-found': 404,
  /** No grant has this id. */
  'grant.not-found': 404,
  /** There are as many grants as the registry keeps. */
  'grant.limit': 409,
  /** The user is the last administrator who can log in. */
  'user.last-administrator': 409,
  /** A rule of the settings makes the user an administrator, so no request takes the role away. */
  'user.role-by-rule': 409,
  /** No API key has this id. */
  'api-key.not-found': 404,
  /** The owner has as many API keys as one owner may have. */
  'api-key.limit': 409,
  /** The bucket is not connected, or the caller may not see it. */
  'bucket.not-connected': 404,
  /** There is no such object that the caller may read. */
  'object.not-found': 404,
  /** The bucket is connected, with other settings. */
  'bucket.already-connected': 409,
  /** No re-index job has this id. */
  'job.not-found': 404,
  /** Another re-index of the bucket is open. */
  'job.conflict': 409,
  /** The job has ended. */
  'job.not-cancellable': 409,
  /** The job cannot be paused in its state. */
  'job.not-pausable': 409,
  /** The job is not paused. */
  'job.not-resumable': 409,
  /** No deletions that this job held back wait for a person. */
  'job.nothing-waits': 409,
  /** Tally does not write the bucket's notification with this source, so there is nothing to repair. */
  'job.repair-refused': 409,
  /** As many re-index jobs are open as the registry keeps. */
  'job.limit': 409,
  /** No dead letter has this id, or it is gone from its queue. */
  'dead-letter.not-found': 404,
  /** The registry knows no dead-letter queue. */
  'dead-letter.no-queue': 409,
  /** The embedded mode has no AWS account whose buckets could be connected. */
  'connect.embedded': 409,
  /** The registry knows no bucket queue to which events could be sent. */
  'connect.no-queue': 409,
  /** The bucket queue does not exist. */
  'connect.queue-missing': 409,
  /** The bucket and the bucket queue are in different partitions of AWS. */
  'connect.partition': 409,
  /** The bucket belongs to another account, for which Tally has no credentials: its owner sends the events to a topic. */
  'connect.other-account': 409,
  /** AWS does not permit a request that the connection needs. */
  'connect.denied': 409,
  /** Another notification of the bucket receives the same events, and S3 permits one. */
  'connect.overlap': 409,
  /** The bucket's notification has a part that this version does not know, so that writing it could remove it. */
  'connect.unknown-configuration': 409,
  /** S3 cannot reach a destination of the bucket's notification. */
  'connect.destination': 409,
  /** Something in AWS makes the connection impossible. */
  'connect.blocked': 409,
  /** The change touches what is not Tally's, so a person looks at the plan first. */
  'connect.plan-needed': 409,
  /** The plan is of another state of AWS than there is now. */
  'connect.plan-outdated': 409,
  /** Somebody else changed the same document of AWS at the same moment. */
  'connect.changed-meanwhile': 409,
  /** Another change of connections runs. */
  'connect.busy': 409,
  /** The notification of the bucket is paused. */
  'connect.paused': 409,
  /** The notification of the bucket is not paused. */
  'connect.not-paused': 409,
  /** Nothing was made in AWS for the bucket. */
  'connect.not-applied': 409,
  /** The connection of the bucket is being removed. */
  'connect.removing': 409,
  /** The record was changed by another request at the same moment. */
  'state.conflict': 409,
  /** The search reads more than one request may, before it has an answer. */
  'search.too-wide': 503,
  /** This installation has neither the built panel nor what builds it. */
  'panel.not-built': 503,
  /** The request took longer than it may. */
  'request.timeout': 503,
  /** The process stopped while it answered. */
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
