-- KEYS: counters. ARGV: the window in milliseconds. Gives of each, with a comma between, the calls
-- admitted in the window and the milliseconds to its end, or nothing.
local told = {}
for at, key in ipairs(KEYS) do
  local used = redis.call('GET', key)
  local left = used and redis.call('PTTL', key) or 0
  told[at] = left > 0 and used .. ' ' .. math.min(left, tonumber(ARGV[1])) or ''
end
return table.concat(told, ',')
