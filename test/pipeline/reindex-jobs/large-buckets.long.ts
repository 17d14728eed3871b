/** Large buckets with all their objects. */
import './large-buckets.test.ts';
