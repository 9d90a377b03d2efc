#!/bin/sh
# snippet: run
flock nightly.lock ./nightly.sh
# end snippet
