-- Names the keys of a lock.
-- A Cluster needs a list of all keys that a script uses. Elsewhere the lock and the
-- marker are enough, and the script adds the others: that is less to send and to
-- take apart. Globals are made locals, which are faster.
local KEYS, ARGV, call = KEYS, ARGV, redis.call
local lock, fenceKey, turnKey, markerKey = KEYS[1], KEYS[2], KEYS[3], KEYS[7]
if not turnKey then
  fenceKey, turnKey, markerKey = 'redlatch:1:fence:{' .. lock .. '}', 'redlatch:1:turn:{' .. lock .. '}', fenceKey
end
