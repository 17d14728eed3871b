/**
 * Exit codes. 64, 69 and 78 are EX_USAGE, EX_UNAVAILABLE and EX_CONFIG of sysexits.h; 130 is 128 + SIGINT, as in
 * shells. `drift`: the report found differences. `cancelled` and `paused`: the command waited for a job, and the job was
 * cancelled or its deletion limit waits for a decision. `degraded`
 * and `broken`: what the doctor found, or an apply that has made everything; `broken` also for what it could not read. `notApplied`: the bucket is connected, and its
 * parts in AWS are not all made.
 */
export const exitCodes = {
  ok: 0,
  failure: 1,
  drift: 2,
  cancelled: 3,
  paused: 4,
  degraded: 5,
  broken: 6,
  notApplied: 7,
  usage: 64,
  unavailable: 69,
  config: 78,
  interrupted: 130,
} as const;
