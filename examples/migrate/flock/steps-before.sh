#!/bin/sh
# snippet: steps
exec 9>nightly.lock
flock -w 60 9 || exit
./collect.sh || exit
./publish.sh
# end snippet
