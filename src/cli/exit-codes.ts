/** Exit codes. 64, 69 and 78 are EX_USAGE, EX_UNAVAILABLE and EX_CONFIG of sysexits.h; 2 is kept for a drift report that found drift. */
export const exitCodes = { ok: 0, failure: 1, usage: 64, unavailable: 69, config: 78 } as const;
