-- Frees the lock, if it is the value's, and raises the fence to the token: an
-- acquire of the same value and token that is still in flight is then stale, and
-- leaves no lock behind. Removes the value from the queue, and wakes the next.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  token, 20 digits; '' for none
-- KEYS[3]  its turn                   ARGV[3]  retention of the fence, ms
-- KEYS[4]  its queue                  ARGV[4]  window of the token, µs
--                                     ARGV[5]  inbox under which the value may wait
--                                     ARGV[6]  1 if it must not be applied twice: with a
--                                              token that is above all before it
--                                     ARGV[7]  to keep the lock taken: for how long at most, ms
--          ARGV[6] and [7] may be absent
--
-- Reply: in the common case a number, the server's clock in µs. It means granted,
-- with the token as the fence. Otherwise {status, holder, left ms, fence, now s, now µs}, all strings
--   granted   the key was ours and is gone, or, with ARGV[7], expires by then
--   held      holder has it, for as long as left says (-1: no expiry)
--   foreign   a key of type holder is in its place
--   absent    there is no key
--   stale     with ARGV[6] = 1: the key is ours, and the fence is not below the token
--   ahead     with ARGV[6] = 1: the key is ours, and the token could not be the fence
local lock, value, token = KEYS[1], ARGV[1], ARGV[2]
local time = redis.call('TIME')
local got = redis.call('MGET', lock, KEYS[2], KEYS[3])
local holder, fence, turn = got[1], token ~= '' and got[2] or '', got[3]
local once = ARGV[6] == '1' and holder == value and token ~= ''

-- The common case: the lock is ours and nobody waits. It comes before the
-- helpers, since even to define a function takes time.
local at = time[1] * 1000000 + time[2]
local rises = fence < token and tonumber(token) <= at + ARGV[4]
if holder == value and not turn and not ARGV[7] and (rises or fence == token and not once) then
  if rises then
    redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
  end
  redis.call('DEL', lock)
  return at
end

-- All other cases.
--#include fenceFormat
--#include other
--#include queue
--#include group
holder = seen(holder, time, value)
if once and fence >= token then
  return {'stale', '', '0', fence, time[1], time[2]}
end
if fence < token then
  -- A token that is ahead of the clock would be refused by an acquire, and must
  -- not raise the fence by way of its release.
  --#include fence
  if not tooFarAhead(token, fence, time, ARGV[4]) then
    -- One who has the lock from now on keeps its token.
    fence = taken == '' and (holder ~= value or ARGV[7]) and fenceText(token, holderToken(got[2] or ''), token) or token
    redis.call('SET', KEYS[2], fence, 'PX', ARGV[3])
  elseif once then
    return {'ahead', '', '0', fence, time[1], time[2]}
  end
end
local reply
if holder == value then
  if not ARGV[7] then
    redis.call('DEL', lock)
    taken, count = nil, 0
  elseif redis.call('PTTL', lock) > tonumber(ARGV[7]) then
    redis.call('PEXPIRE', lock, ARGV[7])
  end
  reply = {'granted', '', '0', fence, time[1], time[2]}
else
  reply = other(holder, fence, time)
end
if turn then
  openQueue(turn, time, string.sub(fence, 1, fenceDigits), '')
  -- Under either form: the inbox may have been denied, or allowed, meanwhile.
  redis.call('ZREM', KEYS[4], value .. toInbox .. ARGV[5], value .. toInbox)
  if reply[1] == 'foreign' then
    taken, count = '', 1
  end
  serve()
end
return reply
