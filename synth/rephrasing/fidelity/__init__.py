"""How true a rewrite is: one layer of code for each kind of fact, and the verdict of all."""
