-- SPDX-License-Identifier: MIT
-- A sieve of coroutines, each of which resumes the one before.
local function numbers(limit)
  return coroutine.wrap(function() for i = 2, limit do coroutine.yield(i) end end)
end
local function filter(p, source)
  return coroutine.wrap(function()
    for n in source do if n % p ~= 0 then coroutine.yield(n) end end
  end)
end
for _ = 1, 20 * (arg[1] or 60) do
  local source = numbers(280)
  while true do
    local prime = source()
    if not prime then break end
    source = filter(prime, source)
  end
end
