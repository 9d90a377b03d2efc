-- Runs requests for several names. Common cases are decided here, from
-- what is read of all names at once; every other request is run by the script of
-- its operation. An error of one is the answer to that one alone. It makes the names
-- of keys itself, so it is for a server that is no part of a Cluster.
--
-- KEYS     the locks, all different, and then the server's marker, if it matters
-- ARGV[1]  with a marker: how it must begin; see acquire.lua
-- ARGV[2]  with a marker: the line of INFO replication; see acquire.lua
-- ARGV[3]  inbox; '' for waiters that poll
-- ARGV[4]  time to live, ms
-- ARGV[5]  retention of the fence, ms
-- ARGV[6]  window of the token, µs
-- ARGV     then for each lock: operation, value, token
-- An operation is a for acquire, with the ticket behind it to wait; e for extend; r
-- for release; each of the whole lock.
--
-- Reply: a list of what the scripts of the operations reply, in the order of KEYS, or
-- {'!', error}
local function acquire(KEYS, ARGV)
  --#include ../acquire
end
local function extend(KEYS, ARGV)
  --#include ../extend
end
local function release(KEYS, ARGV)
  --#include ../release
end

local KEYS, ARGV, call = KEYS, ARGV, redis.call
local expected, server, inbox, ttl, retention, window = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local count, keys = (#ARGV - 6) / 3, {}
for i = 1, count do
  local lock, at = KEYS[i], 3 * i
  keys[at - 2], keys[at - 1], keys[at] = lock, 'redlatch:1:fence:{' .. lock .. '}', 'redlatch:1:turn:{' .. lock .. '}'
end
local markerKey = KEYS[count + 1]
keys[3 * count + 1] = markerKey
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local got = call('MGET', unpack(keys))
local marker = markerKey and got[3 * count + 1]

local function trusted()
  --#include trusted
  return fit or false, from
end

local fit, from -- of trusted, once a request has needed it
local function one(i, operation, value, token)
  local lock, at, once = KEYS[i], 3 * i, false
  local text, fenceKey, stored, turn = got[at - 2], keys[at - 1], got[at - 1] or '', got[at]
  if operation == 'r' then
    --#include free
    return release({lock}, {value, token, inbox, retention, ARGV[6]})
  end
  if fit == nil then fit, from = trusted() end
  if operation == 'e' then
    --#include renew
    return extend({lock, markerKey}, {value, token, expected, server, ttl, retention})
  end
  --#include take
  return acquire({lock, markerKey}, {value, token, expected, server, string.sub(operation, 2), inbox, ttl, retention, ARGV[6]})
end

-- Acquisitions come first: a full server refuses what needs memory only until a
-- script has written something.
local replies = {}
for _, first in ipairs({true, false}) do
  for i = 1, count do
    local at = 3 * i + 4
    local operation = ARGV[at]
    if (operation ~= 'r' and operation ~= 'e') == first then
      local whole, reply = pcall(one, i, operation, ARGV[at + 1], ARGV[at + 2])
      if not whole then
        -- The error says that it came from within a script, as that of a script does.
        reply = {'!', (type(reply) == 'table' and reply.err or tostring(reply)) .. ' script: batch, on @user_script'}
      elseif type(reply) == 'table' and reply.err then
        reply = {'!', reply.err}
      end
      replies[i] = reply
    end
  end
end
return replies
