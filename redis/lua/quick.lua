-- Takes the lock for a value, if it is free or already that value's, and puts
-- the value into the line if it is not. This file is the common case: nobody
-- has the lock and nobody waits. acquire.lua is all the others; what they need
-- is defined only after this, since even that takes time.
--
-- KEYS[1]  the lock                   ARGV[1]   value
-- KEYS[2]  its fence                  ARGV[2]   time to live, ms
-- KEYS[3]  its turn                   ARGV[3]   token, 20 digits; '' for none
-- KEYS[4]  its queue                  ARGV[4]   retention of the fence, ms
-- KEYS[5]  the server's marker;       ARGV[5]   window of the token, µs
--          absent where it is not to  ARGV[6]   how far a token may leap over its fence
--          be looked at               ARGV[7]   with KEYS[5]: the config of the membership
--                                     ARGV[8]   with KEYS[5]: o if the guard is off, else ''
--                                     ARGV[9]   b to barge, else ''
--                                     ARGV[10]  to wait: ticket, µs
--                                     ARGV[11]  to wait: inbox; '' for one who asks
--          ARGV[7] to [11] may be absent from some point on
--
-- Reply: {status, holder, left ms, fence, now s, now µs, rank}, all strings
--   granted     the key is ours for the whole time to live; holder is the
--               server's replication id, with the guard on
--   held        holder has it, for as long as left says (-1: no expiry)
--   foreign     a key of type holder is in its place
--   reserved    it is free, and kept for somebody before us in line; left says
--               when we are to look whether that one came for it, if it is not 0
--   stale       the token is not above the fence
--   behind      the token is too far behind this server's clock
--   ahead       the token is too far ahead of this server's clock, and of the fence
--   quarantine  this server may have forgotten locks; left says for how long yet
--   config      this server is marked for another list of nodes, or, with the
--               guard off, for locks that live less long
-- rank is our place in line, 1 for the head; 0, or absent, if we have none
local lock, value, token, ticket = KEYS[1], ARGV[1], ARGV[3], ARGV[10]
local time = redis.call('TIME')
local got = redis.call('MGET', lock, KEYS[2], KEYS[3], KEYS[5] or KEYS[3])
local holder, fence, turn, marker = got[1], token ~= '' and got[2] or '', got[3], KEYS[5] and got[4]
local server = ''
if not holder and not turn then
  -- The offsets are those of marker.lua.
  local at, n = time[1] * 1000000 + time[2], KEYS[5] and #ARGV[7]
  local trusted = not n or ARGV[8] == 'o' and not marker
  -- Where replicas are required it is left to guard.lua to count them.
  if marker and string.sub(ARGV[7], -4) == ' 0 0' and string.sub(marker, 1, 2) == '2 ' and string.sub(marker, 44, 44 + n) == ARGV[7] .. ' ' then
    server = string.sub(marker, 3, 42)
    local info = redis.pcall('INFO', 'replication')
    trusted = type(info) == 'string' and string.find(info, 'role:master', 1, true)
      and string.find(info, 'master_replid:' .. server, 1, true)
      and tonumber(string.sub(marker, 45 + n, 60 + n)) <= at
  end
  local t = tonumber(token)
  -- What node.Judge grants by the clock; acquire.lua has the whole rule.
  if trusted and (t and fence < token and t >= at - ARGV[5] and t <= at + ARGV[5] or not t and not got[2])
    and redis.call('SET', lock, value, 'NX', 'PX', ARGV[2]) then
    if t then
      -- Memory, disk and role were found fit for the first write of this
      -- script, and so are for the second.
      redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
    end
    return {'granted', server, '0', token, time[1], time[2]}
  end
end

