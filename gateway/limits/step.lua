-- KEYS: the key's counter. ARGV: its limit, the window in milliseconds.
-- Gives whether the call is admitted, the calls admitted in the window, milliseconds to its end.
-- A counter without an end, or with one too far off (the server's clock was set back), is put right.
local used = tonumber(redis.call('GET', KEYS[1]) or '0') or 0
local left = redis.call('PTTL', KEYS[1])
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
if left <= 0 then
  used, left = 0, window
  redis.call('SET', KEYS[1], 0, 'PX', window)
elseif left > window then
  left = window
  redis.call('PEXPIRE', KEYS[1], window)
end
if used >= limit then return {0, used, left} end
redis.call('INCR', KEYS[1])
return {1, used + 1, left}
