/** This process's actor: the operating system's user and the machine. */
import { hostname, userInfo } from 'node:os';
import type { Actor } from '../base/actor.ts';

/** Returns the actor of actions that this process does by itself. */
export function processActor(): Actor {
  return { kind: 'local', user: userName(), host: hostname() };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // containers run with user ids that have no name
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
