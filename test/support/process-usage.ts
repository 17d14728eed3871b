import { readFileSync } from 'node:fs';

/** What a process used since it began. */
export interface Usage {
  /** User and system time of all its threads, to 10 ms. */
  readonly cpuUs: number;
  /** The most memory that was resident. */
  readonly peakRssBytes: number;
  /** What is resident now. */
  readonly rssBytes: number;
}

/** /proc counts CPU time in ticks of USER_HZ, which is 100 on every platform that Node runs on. */
const TICK_US = 10_000;

/** What Linux says of a process. Throws when it is gone, or where there is no /proc. */
export function usageOf(pid: number): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // the second field, the program's name in parentheses, may hold spaces
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const bytesOf = (name: string): number => {
    const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
    if (kilobytes === undefined) throw new Error(`/proc/${pid}/status has no ${name}`);
    return Number(kilobytes) * 1_024;
  };
  return { cpuUs: (Number(fields[11]) + Number(fields[12])) * TICK_US, peakRssBytes: bytesOf('VmHWM'), rssBytes: bytesOf('VmRSS') };
}
