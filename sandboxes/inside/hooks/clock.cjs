// Stops the wall clock of every Node in a sandbox at the instant in SANDBOX_CLOCK (UTC).
// Timers run on a monotonic clock and are not touched. Where the sandbox has a seed, too, what is
// drawn at random becomes its stream.
"use strict";
const instant = Date.parse(process.env.SANDBOX_CLOCK + "Z");
const RealDate = Date;
globalThis.Date = class Date extends RealDate {
  constructor(...args) {
    super(...(args.length ? args : [instant]));
  }
  static now() {
    return instant;
  }
};
if (process.env.SANDBOX_SEED) require("./seeded_random.cjs");
