import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressGroupOf } from '../../src/identity/address-group.rules.ts';

describe('the group of an address', () => {
  it.each([
    ['10.0.0.7', '10.0.0.7'],
    ['::ffff:10.0.0.7', '10.0.0.7'],
    ['::FFFF:0a00:0007', '10.0.0.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::10.0.0.7', '64:ff9b:0:0::/64'],
    // what is no address
    ['1::2::3', '1::2::3'],
    ['1:2:3', '1:2:3'],
    ['1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8:9'],
    ['12345::', '12345::'],
    ['::1.2.3', '::1.2.3'],
    ['::1.2.3.256', '::1.2.3.256'],
    ['unknown', 'unknown'],
    ['', ''],
  ])('%s is %s', (address, group) => {
    expect(addressGroupOf(address)).toBe(group);
  });

  it('is bounded, whatever the text is', () => {
    fc.assert(fc.property(fc.string({ maxLength: 500 }), (text) => addressGroupOf(text).length <= 64));
    expect(addressGroupOf('x'.repeat(10_000))).toHaveLength(64);
  });
});
