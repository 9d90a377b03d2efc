-- guard(expected, server, ttl) decides whether this server may grant, by its
-- marker. It writes nothing: a server that has to be marked, or marked again, is
-- marked by a request of its own (mark.lua).
--
-- It returns nil if the server may grant. server is 'o' for a client with the guard
-- off: then a master without a marker may, and of a marker MEMBERSHIP and MAXTTL
-- count, and the quarantine after a membership change: locks of the former
-- membership may be held on other servers. Otherwise it returns the reply:
--   {'quarantine', reason, left ms, '', now s, now µs}
--     reason unmarked: there is no marker; remark: it is from before a restart
--     or promotion, from before a marking that the client knows of, or the
--     clock was set back since. Then left is how long the quarantine lasts once
--     the server is marked. One that is UNREPLICATED cannot be marked, and says so.
--   {'config', marker, '0', '', now s, now µs}   it belongs to another membership
-- or an error: NOINFO, READONLY, UNREPLICATED
--#include role
--#include markerFormat
--#include marker

local function misconfigured() return {'config', marker, '0', '', time[1], time[2]} end

local function guard(expected, server, ttl)
  local off = not markerKey or server == 'o'
  local info, refused = replication(off)
  if not info then return refused end
  if off and not marker then return nil end
  local config = string.sub(expected, configFrom, -2)
  local standing = read(marker)
  local left = standing and standing.trusted - now
  local function quarantined(reason, ms)
    return {'quarantine', reason, string.format('%.0f', ms), '', time[1], time[2]}
  end
  if marker and not standing then return misconfigured() end
  if off then
    if standing.membership ~= string.sub(config, 1, 1 + membershipTo - membershipFrom) or tonumber(ttl) > tonumber(standing.ttl) + 1 then
      return misconfigured()
    end
    if standing.reason == 'membership' and left > 0 then return quarantined('membership', math.ceil(left / 1000)) end
    return unreplicated(info, standing.config)
  end
  if not standing then return unreplicated(info, config) or quarantined('unmarked', quarantineOf(config)) end
  if standing.config ~= config then return misconfigured() end
  if not string.find(info, 'master_replid:' .. standing.id, 1, true) or setBack(standing, left) or replaced(standing, expected) then
    return unreplicated(info, config) or quarantined('remark', standing.quarantine)
  end
  if left <= 0 then return unreplicated(info, config) end
  return quarantined(standing.reason, math.ceil(left / 1000))
end
