/** Set-up of each test file: whatever daemon it leaves running ends with it. */
import { afterAll } from 'vitest';
import { killAll } from './daemon.ts';

afterAll(killAll);
