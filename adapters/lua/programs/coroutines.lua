-- SPDX-License-Identifier: MIT
-- Coroutines that end in every way, and that run each other.
local log = {}
local function note(...) log[#log + 1] = table.concat({...}, " ") end

local function deep(n, f) if n == 0 then return f() end return (deep(n - 1, f)) end
local function yield_deep(n) return deep(n, function() return coroutine.yield(n) end) end

-- One coroutine for each way to end. Each gets its number.
local ways = {
  returns = function(n) return n end,
  returns_after_yields = function(n) for i = 1, n % 5 do yield_deep(i) end return n end,
  fails = function(n) deep(n % 30, function() error({n}) end) end,
  fails_after_yields = function(n) yield_deep(n % 7); error("failed", 0) end,
  yields_across_pcall = function(n)
    local ok = pcall(function() yield_deep(n % 9); error("inner") end)
    assert(not ok)
    return select(2, pcall(yield_deep, n % 3))
  end,
  fails_in_handler = function(n)
    return xpcall(function() deep(3, error) end, function() yield_deep(0) return "handled" end)
  end,
  yields_in_metamethod = function(n)
    local t = setmetatable({}, {
      __index = function(_, k) return yield_deep(k % 4) end,
      __add = function(a, b) return yield_deep(2) end,
      __lt = function() return yield_deep(1) end,
      __concat = function() return yield_deep(3) end,
      __call = function(_, x) return yield_deep(x) end})
    local _ = t[n], t + 1, t < t, t .. "x", t(3)
  end,
  yields_in_iterator = function(n)
    for i in function(_, i) yield_deep(2); i = (i or 0) + 1; if i <= n % 6 then return i end end do
      note("iterator", i)
    end
  end,
  yields_in_close = function(n)
    local a <close> = setmetatable({}, {__close = function() yield_deep(4) end})
    local b <close> = setmetatable({}, {__close = function() yield_deep(1) end})
    if n % 2 == 0 then error("with variables to close", 0) end
    return n
  end,
  nests = function(n)
    local inner = coroutine.wrap(function() for i = 1, 3 do yield_deep(i) end deep(4, error) end)
    while pcall(inner) do yield_deep(n % 2) end
  end,
  overflows = function() local function f() return 1 + f() end f() end,
  resumes_itself = function() assert(not coroutine.resume(coroutine.running())) yield_deep(1) end,
  closes_itself = function() assert(not pcall(coroutine.close, coroutine.running())) yield_deep(1) end,
}
local names = {}
for name in pairs(ways) do names[#names + 1] = name end
table.sort(names)

-- Runs a coroutine to its end, or leaves it, or closes it, from stacks of changing depth.
local function run(name, n)
  local co = coroutine.create(ways[name])
  local resumes = n % 4 == 0 and n % 3 or 1000
  for i = 1, resumes do
    local ok, value = deep(n % 11 + i % 3, function() return coroutine.resume(co, n) end)
    if not ok then note(name, "failed", type(value)) end
    if coroutine.status(co) == "dead" then break end
  end
  if n % 4 == 1 or n % 8 == 0 then
    note(name, tostring((deep(n % 5, function() return coroutine.close(co) end))))
  end
end

for n = 1, 60 do
  for _, name in ipairs(names) do
    if name ~= "overflows" or n % 20 == 0 then run(name, n) end
  end
  if n % 10 == 0 then collectgarbage() end
end

-- A generator that recurses: each value passes through many coroutines.
local function tree(depth)
  return coroutine.wrap(function()
    if depth > 0 then
      for v in tree(depth - 1) do coroutine.yield(v) end
      coroutine.yield(depth)
      for v in tree(depth - 1) do coroutine.yield(v) end
    end
  end)
end
local sum = 0
for v in tree(7) do sum = sum + v end
note("tree", sum)

-- The same coroutine runs on behalf of different ones.
local shared = coroutine.wrap(function() while true do yield_deep(5) end end)
local users = {}
for i = 1, 40 do
  users[i] = coroutine.wrap(function() for _ = 1, 10 do deep(i % 7, shared); coroutine.yield() end end)
end
for _ = 1, 10 do for i = 1, 40 do users[i]() end end

-- Coroutines within coroutines, until the C stack is full.
local function nest(n) return coroutine.wrap(function() return pcall(nest(n + 1)) end) end
note("nest", tostring(pcall(nest(1))))
print(#log, table.concat(log, ","):len())
