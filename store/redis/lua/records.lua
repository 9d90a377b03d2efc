-- Keeps the records of a name: which of its occurrences are completed.
--
-- KEYS[1]  the records: a sorted set of   ARGV[1]  what to do; see below
--          occurrences, each with the     ARGV[2]  retention, ms
--          time at which it is forgotten, ARGV[3]  id of the membership; '' if the guard is off
--          ms                             ARGV[4]  as ARGV[1] says
-- KEYS[2]  the memory of the name, by which it is known whether records may be
--          missing: BEGUN SINCE WHOLE RETENTION SERVER
-- KEYS[3]  the server's marker; absent if the guard is off
--
--   check     is the occurrence ARGV[4] completed?
--   complete  record that the occurrence ARGV[4] is completed
--   records   return up to ARGV[5] records, the one that is forgotten last first,
--             without the first ARGV[4]
--   adopt     store the records of other servers, from ARGV[7] on, each as
--             occurrence, left ms, if the memory began at ARGV[4]. With ARGV[5]
--             '1' it is whole from now on, and ARGV[6] is how far it reaches
--             back, µs
--
-- BEGUN is when the memory began, and SINCE from when on its records are complete,
-- each 16 digits, µs. WHOLE is 1 if all that was completed before is in it, else 0.
-- RETENTION is the longest of all requests, ms.
-- SERVER is the replication id, or - if the guard was off. After a restart or a
-- promotion the memory begins anew: the last records may be missing.
--
-- Reply: {status, since, '0', '', now s, now µs, begun, retention, whole, marked, new,
-- count, …}, all strings, … being the records, each as occurrence, left ms
--   granted  the occurrence is completed; or, for records and adopt, done
--   absent   it is not, as far as this server remembers
--   stale    the memory began at another time, and nothing was stored
-- retention is the longest of all requests, ms, as far as the memory reaches. marked is when the server was last marked, µs; '' if that is not known. new is 1 if it
-- had no data then. count is how many records there are.
-- or an error: NOINFO, READONLY
local what, retention = ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now, at = time[1] * 1000 + math.floor(time[2] / 1000), time[1] * 1000000 + time[2]
local function digits(us) return string.format('%016.0f', us) end

-- What the marker says about the server's data.
local server, marked, new = '-', '', '0'
if KEYS[3] then
  --#include role
  --#include marker
  local info, refused = replication()
  if not info then return refused end
  server = string.match(info, 'master_replid:(%x+)')
  local standing = read(redis.call('GET', KEYS[3]))
  if standing and standing.id == server and standing.membership == ARGV[3] then
    local from = standing.trusted
    if standing.reason ~= 'fresh' then from = from - standing.quarantine * 1000 end
    marked = digits(from)
    if standing.reason == 'new' or standing.reason == 'fresh' then new = '1' end
  end
end

local stored = redis.call('GET', KEYS[2])
local begun, since, whole, known, owner = string.match(stored or '', '^(%d+) (%d+) (%d) (%d+) (%S+)$')
known = string.format('%.0f', math.max(tonumber(known) or 0, retention))
if not begun or KEYS[3] and owner ~= server then
  begun, since, whole, owner = digits(at), digits(at), '0', server
end

local status, page, longest = 'granted', {}, retention
-- record(occurrence, left) keeps a record for that long, or longer.
local function record(occurrence, left)
  local ends = tonumber(redis.call('ZSCORE', KEYS[1], occurrence) or 0)
  if ends < now + left then
    redis.call('ZADD', KEYS[1], string.format('%.0f', now + left), occurrence)
  end
  longest = math.max(longest, left)
end
if what == 'complete' then
  record(ARGV[4], retention)
elseif what == 'check' then
  local ends = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[4]) or 0)
  if ends <= now then status = 'absent' end
elseif what == 'records' then
  local found = redis.call('ZRANGE', KEYS[1], '+inf', string.format('(%.0f', now), 'BYSCORE', 'REV', 'LIMIT', ARGV[4], ARGV[5], 'WITHSCORES')
  for i = 1, #found, 2 do
    page[#page + 1] = found[i]
    page[#page + 1] = string.format('%.0f', found[i + 1] - now)
  end
elseif ARGV[4] ~= begun then
  status = 'stale'
else
  for i = 7, #ARGV, 2 do record(ARGV[i], tonumber(ARGV[i + 1])) end
  if ARGV[5] == '1' then
    whole = '1'
    if ARGV[6] < since then since = ARGV[6] end
  end
end

-- last(key, left) has a key live for that long at least.
local function last(key, left)
  if redis.call('PTTL', key) < left then
    redis.call('PEXPIRE', key, string.format('%.0f', left))
  end
end
local memory = begun .. ' ' .. since .. ' ' .. whole .. ' ' .. known .. ' ' .. owner
if memory ~= stored then redis.call('SET', KEYS[2], memory, 'KEEPTTL') end
last(KEYS[2], retention)
if what == 'complete' or what == 'adopt' then
  last(KEYS[1], longest)
  -- Expired records are removed, a few at a time.
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 9, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    if tonumber(oldest[i + 1]) <= now then redis.call('ZREM', KEYS[1], oldest[i]) end
  end
end
-- ZCOUNT would be a right more.
local live, first = 0, redis.call('ZRANGE', KEYS[1], string.format('(%.0f', now), '+inf', 'BYSCORE', 'LIMIT', 0, 1)[1]
if first then
  live = redis.call('ZRANK', KEYS[1], redis.call('ZRANGE', KEYS[1], -1, -1)[1]) - redis.call('ZRANK', KEYS[1], first) + 1
end
local reply = {status, since, '0', '', time[1], time[2], begun, known, whole, marked, new, string.format('%d', live)}
for i = 1, #page do reply[#reply + 1] = page[i] end
return reply
