/** A worker dies before and after each of its steps. */
import './crash.test.ts';
