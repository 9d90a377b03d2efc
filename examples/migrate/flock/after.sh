#!/bin/sh
# snippet: run
redlatch run nightly -- ./nightly.sh
# end snippet
