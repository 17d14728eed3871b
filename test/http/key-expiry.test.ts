import { describe, expect, it } from 'vitest';
import { expiryHeaders } from '../../src/http/control-plane.ts';
import { keyActor, localActor, sessionActor } from '../support/identity/actors.ts';

describe('the header about the end of a key', () => {
  it('is sent to keys that end soon only', () => {
    expect(expiryHeaders(keyActor({ endsSoonAtMs: Date.UTC(2026, 10, 30) }))).toEqual({ 'tally-key-expires': '2026-11-30T00:00:00.000Z' });
    for (const actor of [keyActor(), sessionActor(), localActor]) expect(expiryHeaders(actor)).toEqual({});
  });
});
