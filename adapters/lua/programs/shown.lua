-- SPDX-License-Identifier: MIT
-- A program whose profile is easy to read: functions, callbacks of C functions, coroutines.
local function spins(n)
  local sum = 0
  for i = 1, n do sum = sum + i % 7 end
  return sum
end

local function in_coroutine()
  for _ = 1, 100 do
    spins(20000)
    coroutine.yield()
  end
end

local function sorts()
  local t = {}
  for i = 1, 3000 do t[i] = (i * 7919) % 3001 end
  table.sort(t, function(a, b) return a < b end)
end

local function recurses(n)
  if n > 0 then return 1 + recurses(n - 1) end
  return spins(2000)
end

local co = coroutine.create(in_coroutine)
for _ = 1, 100 do
  coroutine.resume(co)
  sorts()
  recurses(50)
  string.gsub(("x"):rep(2000), "x", string.upper)
end
print(spins(1000))
