#!/bin/sh
# snippet: steps
lease=$(redlatch lock -w 60s --ttl 20s nightly) || exit
eval "$lease"
trap 'redlatch unlock' EXIT
./collect.sh || exit
lease=$(redlatch extend) || exit # before each step that takes long
eval "$lease"
./publish.sh
# end snippet
