/** One more history. */
import './gap-years.test.ts';
