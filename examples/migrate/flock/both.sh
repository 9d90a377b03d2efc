#!/bin/sh
# snippet: run
flock nightly.lock redlatch run nightly -- ./nightly.sh
# end snippet
